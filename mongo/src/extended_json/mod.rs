//! MongoDB's Extended JSON, for those who speak to Mayfly without a driver.
//!
//! Both forms are read. What is written is the shortest form that reads back as the same type, also after a program has
//! read it as plain JSON: an int32 and a double with a fraction are numbers, every other number is an object.
//!
//! Holds: the order of fields is kept, for the first one is a command's name; what is written reads back to the same.

mod read;
mod write;

pub use read::read;
pub use write::write;

#[cfg(test)]
mod tests;
