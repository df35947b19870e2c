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
            Self::Zstd => Some(compress_to_vec(bytes, CompressionLevel::Fastest)),
        }
    }
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
