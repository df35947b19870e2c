//! The three compressions of OP_COMPRESSED. What comes out is never longer than was announced.

use std::io::Read;

use flate2::{Compression, bufread::ZlibDecoder, write::ZlibEncoder};
use ruzstd::{
    decoding::StreamingDecoder,
    encoding::{CompressionLevel, compress_to_vec},
};

/// How a message is compressed. The numbers are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Compressor {
    /// Snappy, as one raw block.
    Snappy = 1,
    /// Zlib.
    Zlib = 2,
    /// Zstandard.
    Zstd = 3,
}

impl Compressor {
    /// All of them, with the names clients use in `hello`.
    pub const ALL: [(&'static str, Self); 3] =
        [("snappy", Self::Snappy), ("zlib", Self::Zlib), ("zstd", Self::Zstd)];

    /// From its number on the wire.
    pub fn from_wire(id: u8) -> Option<Self> {
        Self::ALL.into_iter().map(|(_, compressor)| compressor).find(|compressor| *compressor as u8 == id)
    }

    /// The bytes behind `bytes`: exactly `length` of them, or nothing.
    pub fn decompress(self, bytes: &[u8], length: usize) -> Option<Vec<u8>> {
        let out = match self {
            Self::Snappy => {
                // The block says how long it is; believe neither it nor the frame before they agree.
                if snap::raw::decompress_len(bytes).ok()? != length {
                    return None;
                }
                snap::raw::Decoder::new().decompress_vec(bytes).ok()?
            }
            Self::Zlib => read_at_most(ZlibDecoder::new(bytes), length)?,
            Self::Zstd => read_at_most(StreamingDecoder::new(bytes).ok()?, length)?,
        };
        (out.len() == length).then_some(out)
    }

    /// Compresses.
    pub fn compress(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Snappy => snap::raw::Encoder::new().compress_vec(bytes).ok(),
            Self::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                std::io::Write::write_all(&mut encoder, bytes).ok()?;
                encoder.finish().ok()
            }
            Self::Zstd => {
                Some(with_content_size(compress_to_vec(bytes, CompressionLevel::Fastest), bytes.len()))
            }
        }
    }
}

/// A frame of Zstandard whose header tells the length of what is in it. Ours come without, which the format allows, and some
/// drivers (PyMongo is one) take no others.
///
/// ```text
///   magic (4)  descriptor (1)  window (1)  [content size (4), if the descriptor's highest bits are 10]  blocks
/// ```
fn with_content_size(frame: Vec<u8>, length: usize) -> Vec<u8> {
    const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    const CONTENT_SIZE_OF_4: u8 = 0b1000_0000;
    // Content size, single segment, dictionary: each would be another header.
    const OTHERS: u8 = 0b1110_0011;
    let (Some((start, blocks)), Ok(length)) = (frame.split_first_chunk::<6>(), u32::try_from(length)) else {
        return frame;
    };
    let [magic @ .., descriptor, window] = *start;
    if magic != MAGIC || descriptor & OTHERS != 0 {
        return frame;
    }
    let mut told = Vec::with_capacity(frame.len() + 4);
    told.extend_from_slice(&magic);
    told.extend_from_slice(&[descriptor | CONTENT_SIZE_OF_4, window]);
    told.extend_from_slice(&length.to_le_bytes());
    told.extend_from_slice(blocks);
    told
}

/// Reads one byte more than allowed, to see that there is none.
fn read_at_most(reader: impl Read, length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(length as u64 + 1).read_to_end(&mut out).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_comes_back() {
        let text = b"mayfly mayfly mayfly, ".repeat(400);
        for (name, compressor) in Compressor::ALL {
            let packed = compressor.compress(&text).unwrap();
            assert!(packed.len() < text.len(), "{name}");
            assert_eq!(compressor.decompress(&packed, text.len()), Some(text.clone()), "{name}");
        }
    }

    #[test]
    fn a_frame_of_zstandard_tells_its_length() {
        for length in [0, 1, 100, 70_000, 1_000_000] {
            let bytes: Vec<u8> = (0..length).map(|at: u32| (at / 7) as u8).collect();
            let packed = Compressor::Zstd.compress(&bytes).unwrap();
            assert_eq!(packed[4] >> 6, 2, "a content size of four bytes");
            assert_eq!(packed[6..10], length.to_le_bytes());
            assert_eq!(Compressor::Zstd.decompress(&packed, bytes.len()), Some(bytes));
        }
    }

    /// A small frame that would become large is not unpacked beyond what it announced.
    #[test]
    fn a_bomb_is_refused() {
        let text = vec![0; 10_000_000];
        for (name, compressor) in Compressor::ALL {
            let packed = compressor.compress(&text).unwrap();
            assert_eq!(compressor.decompress(&packed, 1000), None, "{name}");
            assert_eq!(compressor.decompress(&packed[..packed.len() / 2], text.len()), None, "{name}");
            assert_eq!(compressor.decompress(b"", 1000), None, "{name}");
        }
    }
}
