"""Files through the driver's GridFS, which is collections, unique indexes and sorted finds."""

import os

import pytest
from gridfs import GridFSBucket, NoFile


def test_a_file_of_several_chunks(database):
    bucket = GridFSBucket(database)
    content = os.urandom(1_000_000)
    id = bucket.upload_from_stream("f", content, metadata={"k": 1})
    assert bucket.open_download_stream(id).read() == content
    assert database["fs.chunks"].count_documents({"files_id": id}) == 4
    stream = bucket.open_download_stream_by_name("f")
    stream.seek(500_000)
    assert stream.read(10) == content[500_000:500_010] and stream.metadata == {"k": 1}
    assert {"files_id_1_n_1"} <= set(database["fs.chunks"].index_information())


def test_versions_renaming_deleting(database):
    bucket = GridFSBucket(database)
    first = bucket.upload_from_stream("f", b"one")
    bucket.upload_from_stream("f", b"two")
    assert bucket.open_download_stream_by_name("f").read() == b"two"
    assert bucket.open_download_stream_by_name("f", revision=0).read() == b"one"
    bucket.rename(first, "g")
    assert bucket.open_download_stream_by_name("g").read() == b"one"
    bucket.delete(first)
    with pytest.raises(NoFile):
        bucket.open_download_stream(first)
    assert [file.filename for file in bucket.find({})] == ["f"]


def test_files_may_expire(database, clock):
    bucket = GridFSBucket(database)
    id = bucket.upload_from_stream("f", b"x" * 10)
    for name in ("fs.files", "fs.chunks"):
        database[name].create_index("_ts", expireAfterSeconds=60)
    assert bucket.open_download_stream(id).read() == b"x" * 10
    clock.advance(60)
    with pytest.raises(NoFile):
        bucket.open_download_stream(id)
