//! Counts what a finished recording holds, by event name. Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;
use std::path::Path;

use dial9::format::Decoder;

/// Events in all `.bin` files below `directory`.
pub fn count_events(directory: &Path) -> Result<HashMap<String, u64>, String> {
    let mut counts = HashMap::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|e| e.to_string())? {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "bin") {
                count_file(&path, &mut counts)?;
            }
        }
    }
    Ok(counts)
}

fn count_file(path: &Path, counts: &mut HashMap<String, u64>) -> Result<(), String> {
    let describe = |what: String| format!("{}: {what}", path.display());
    let bytes = std::fs::read(path).map_err(|e| describe(e.to_string()))?;
    let mut decoder = Decoder::new(&bytes).ok_or(describe("no trace".to_string()))?;
    decoder
        .for_each_event(|event| match counts.get_mut(event.name) {
            Some(count) => *count += 1,
            None => {
                counts.insert(event.name.to_string(), 1);
            }
        })
        .map_err(|e| describe(e.to_string()))
}
