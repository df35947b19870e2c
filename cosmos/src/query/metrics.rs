//! What a query page cost, in the form SDKs parse: `name=value;` pairs.

use std::time::Duration;

use super::execute::RowPage;

/// The text of the query metrics header.
pub fn text(page: &RowPage, compile: Duration, run: Duration) -> String {
    let ms = |duration: Duration| format!("{:.2}", duration.as_secs_f64() * 1000.0);
    let output: usize = page.rows.bytes();
    // Everything between compiling and writing is one pass here, so it is told as one figure.
    let ratio = if page.scanned == 0 { 1.0 } else { (page.rows.len() as f64 / page.scanned as f64).min(1.0) };
    [
        ("totalExecutionTimeInMs", ms(compile + run)),
        ("queryCompileTimeInMs", ms(compile)),
        ("queryLogicalPlanBuildTimeInMs", ms(Duration::ZERO)),
        ("queryPhysicalPlanBuildTimeInMs", ms(Duration::ZERO)),
        ("queryOptimizationTimeInMs", ms(Duration::ZERO)),
        ("VMExecutionTimeInMs", ms(run)),
        ("indexLookupTimeInMs", ms(Duration::ZERO)),
        ("instructionCount", page.scanned.to_string()),
        ("documentLoadTimeInMs", ms(Duration::ZERO)),
        ("systemFunctionExecuteTimeInMs", ms(Duration::ZERO)),
        ("userFunctionExecuteTimeInMs", ms(Duration::ZERO)),
        ("retrievedDocumentCount", page.scanned.to_string()),
        ("retrievedDocumentSize", page.scanned_bytes.to_string()),
        ("outputDocumentCount", page.rows.len().to_string()),
        ("outputDocumentSize", output.to_string()),
        ("writeOutputTimeInMs", ms(Duration::ZERO)),
        ("indexUtilizationRatio", format!("{ratio:.2}")),
    ]
    .map(|(name, value)| format!("{name}={value}"))
    .join(";")
}
