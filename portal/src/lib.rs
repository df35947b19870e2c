//! The web portal's files, as the server sends them.
//!
//! The source is in `web/`; `cargo xtask portal` builds it into `assets/`, which is committed, so building the server
//! needs no Node. Names do not change with the contents: browsers ask again with the tag of what they have.
//!
//! Holds: nothing here needs a key, and nothing here is about data. The files load nothing from anywhere else, and
//! [`CONTENT_SECURITY_POLICY`] makes browsers keep it so.

/// Nothing but our own files, no inline script or style, no frames.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the portal.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its path below the portal's.
    pub name: &'static str,
    /// Its media type.
    pub content_type: &'static str,
    /// Its contents.
    pub bytes: &'static [u8],
    /// Whether they are compressed with gzip. Every browser takes that; scripts that wait for the page may not, so the page
    /// itself is plain.
    pub is_gzip: bool,
}

macro_rules! assets {
    ($($name:literal: $content_type:literal,)*) => {
        /// All files.
        pub const ASSETS: &[Asset] = &[
            Asset {
                name: "index.html",
                content_type: "text/html; charset=utf-8",
                bytes: include_bytes!("../assets/index.html"),
                is_gzip: false,
            },
            $(Asset {
                name: $name,
                content_type: $content_type,
                bytes: include_bytes!(concat!("../assets/", $name, ".gz")),
                is_gzip: true,
            }),*
        ];
    };
}

assets! {
    "app.js": "text/javascript; charset=utf-8",
    "codemirror.js": "text/javascript; charset=utf-8",
    "uplot.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

/// The file at a path below the portal's; the bare path is the page itself.
pub fn find(path: &str) -> Option<&'static Asset> {
    let name = if path.is_empty() { "index.html" } else { path };
    ASSETS.iter().find(|asset| asset.name == name)
}

impl Asset {
    /// Changes with the contents. FNV-1a: it tells versions apart, nobody gains by forging it.
    pub fn etag(&self) -> String {
        let hash = self.bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        format!("\"{hash:016x}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE_BYTES_MAX: usize = 1 << 20;

    #[test]
    fn everything_that_was_built_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let mut built: Vec<_> = std::fs::read_dir(folder)
            .expect("assets are committed")
            .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
            .collect();
        let file = |asset: &Asset| format!("{}{}", asset.name, if asset.is_gzip { ".gz" } else { "" });
        let mut served: Vec<_> = ASSETS.iter().map(file).collect();
        built.sort();
        served.sort();
        assert_eq!(served, built);
    }

    #[test]
    fn files_are_gzip_and_small_together() {
        assert!(ASSETS.iter().all(|asset| asset.is_gzip == asset.bytes.starts_with(&[0x1f, 0x8b])));
        let sum: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(sum < WHOLE_BYTES_MAX, "{sum} bytes");
    }

    #[test]
    fn the_bare_path_is_the_page() {
        assert_eq!(find("").map(|asset| asset.name), Some("index.html"));
        assert_eq!(find("app.js").map(|asset| asset.name), Some("app.js"));
        assert!(find("../app.js").is_none() && find("missing").is_none());
    }
}
