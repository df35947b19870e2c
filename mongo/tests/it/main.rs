//! One test binary: golden scripts, and on demand the same scripts and random cases on a real server.

mod literal;
mod oracle;
mod scripts;
mod subject;
