"""Values and documents of every BSON type that the driver can write, few enough that they meet each other.

A filter that never matches shows nothing, so the same small numbers, texts and dates come up in documents, filters and
expressions alike, beside those at the edges of their types.
"""

import datetime
import uuid

from bson import (
    SON,
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)

FIELDS = ["a", "b", "c"]
PATHS = ["a", "b", "c", "a.b", "b.a", "a.0", "a.b.c", "a.1.b", "c.a", "_id", "missing"]
WORDS = ["", "a", "b", "A", "ab", "abc", "aab", "é", "10", "-1.5", "2020-02-29T12:30:45.123Z", "true", "null", "x y z"]
IDS = [ObjectId("5f5f5f5f5f5f5f5f5f5f5f5%d" % n) for n in range(3)]
EDGES = [
    2**31 - 1,
    -(2**31),
    Int64(2**31),
    Int64(2**53 + 1),
    Int64(2**63 - 1),
    Int64(-(2**63)),
    0.0,
    -0.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e308,
    0.1,
    5e-324,
    Decimal128("NaN"),
    Decimal128("Infinity"),
    Decimal128("-0"),
    Decimal128("0.1"),
    Decimal128("1E+3"),
    Decimal128("9.999999999999999999999999999999999E+6144"),
]
DATES = [
    datetime.datetime(2020, 2, 29, 12, 30, 45, 123000),
    datetime.datetime(1970, 1, 1),
    datetime.datetime(2023, 12, 31, 23, 59, 59, 999000),
    datetime.datetime(1905, 6, 15, 6),
    DatetimeMS(-62198755200001),
    DatetimeMS(253402300800000),
]


def number(random):
    kind = random.randrange(10)
    if kind < 5:
        return random.randint(-2, 5)
    if kind < 6:
        return Int64(random.randint(-2, 5))
    if kind < 7:
        return random.choice([-1.5, 0.5, 1.0, 2.0, 2.5, 3.0])
    if kind < 8:
        return Decimal128(random.choice(["-1.5", "0.5", "1", "1.0", "2", "2.50"]))
    return random.choice(EDGES)


def text(random):
    return random.choice(WORDS)


def date(random):
    return random.choice(DATES)


def regex(random):
    return Regex(random.choice(["a", "^a", "b$", "a.c", "A", "", "^ab?", "[0-9]+"]), random.choice(["", "i", "m", "s", "x", "im"]))


def scalar(random):
    kind = random.randrange(24)
    if kind < 9:
        return number(random)
    if kind < 13:
        return text(random)
    if kind < 15:
        return None
    if kind < 17:
        return random.choice([True, False])
    if kind < 19:
        return date(random)
    if kind == 19:
        return random.choice(IDS)
    if kind == 20:
        return random.choice([Timestamp(0, 1), Timestamp(1582979445, 3), Timestamp(2**32 - 1, 2**32 - 1)])
    if kind == 21:
        made = [Binary(b""), Binary(b"ab"), Binary(b"abc", 128), Binary.from_uuid(uuid.UUID(int=7))]
        return random.choice(made)
    if kind == 22:
        return random.choice([MinKey(), MaxKey()])
    return random.choice([regex(random), Code("f()"), Code("f()", {"x": 1})])


def value(random, depth=2):
    kind = random.randrange(10)
    if depth <= 0 or kind < 6:
        return scalar(random)
    if kind < 8:
        return array(random, depth - 1)
    return subdocument(random, depth - 1)


def array(random, depth=1):
    # Arrays of one kind are as common as mixed ones: many operators want numbers, or documents.
    kind = random.randrange(5)
    size = random.choice([0, 1, 2, 3, 3, 4])
    if kind < 2:
        return [number(random) for _ in range(size)]
    if kind < 3:
        return [subdocument(random, depth) for _ in range(size)]
    return [value(random, depth) for _ in range(size)]


def subdocument(random, depth=1):
    names = random.sample(FIELDS, random.choice([0, 1, 1, 2, 3]))
    return SON((name, value(random, depth)) for name in names)


def document(random, number_of_it):
    made = SON([("_id", number_of_it)])
    for name in FIELDS:
        if random.random() < 0.8:
            made[name] = value(random, 2)
    # A field of one type, for what would otherwise nearly always be refused.
    made["n"] = random.randint(-3, 9)
    made["s"] = text(random)
    made["t"] = date(random)
    made["l"] = [number(random) for _ in range(random.randrange(4))]
    return made


def path(random):
    return random.choice(PATHS + ["n", "n", "s", "l", "t"])
