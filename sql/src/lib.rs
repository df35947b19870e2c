//! Cosmos SQL as a pure function of query, parameters, time and documents.
