//! The beginning of a JSON document: the members that are complete.

use serde_json::Value;

/// Depth of objects and arrays up to which the beginning of a document is read; iperf3's have 3.
const DEPTH: usize = 16;

/// The object in `text`, or the part of it that is there.
pub(super) fn object(text: &[u8]) -> Option<Value> {
    let whole: Option<Value> = serde_json::from_slice(text).ok();
    whole.or_else(|| serde_json::from_slice(&completed(text)?).ok()).filter(Value::is_object)
}

/// The text up to the last comma between members, with what closes it.
fn completed(text: &[u8]) -> Option<Vec<u8>> {
    let mut open: Vec<u8> = Vec::new();
    let (mut in_string, mut is_escaped) = (false, false);
    let mut last: Option<(usize, Vec<u8>)> = None;
    for (at, byte) in text.iter().enumerate() {
        match *byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' if open.len() < DEPTH => open.push(b'}'),
            b'[' if open.len() < DEPTH => open.push(b']'),
            b'}' | b']' if open.last() == Some(byte) => {
                open.pop();
            }
            b'{' | b'[' | b'}' | b']' => break,
            b',' => match &mut last {
                Some((end, closing)) => {
                    *end = at;
                    closing.clone_from(&open);
                }
                None => last = Some((at, open.clone())),
            },
            _ => {}
        }
    }
    let (end, closing) = last?;
    let mut whole = text.get(..end)?.to_vec();
    whole.extend(closing.iter().rev());
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_is_read_up_to_where_it_was_cut() {
        let text = br#"{"tcp":true,"title":"a,\"}b","streams":[{"id":1,"bytes":5},{"id":3}]}"#;
        let whole = json!({"tcp": true, "title": "a,\"}b",
                           "streams": [{"id": 1, "bytes": 5}, {"id": 3}]});
        assert_eq!(object(text), Some(whole));
        let ends = |end: &[u8]| {
            let at = text.windows(end.len()).position(|part| part == end).unwrap();
            object(&text[..at + end.len()])
        };
        assert_eq!(ends(b"{\"tcp\":true"), None);
        assert_eq!(ends(b"a,"), Some(json!({"tcp": true})));
        assert_eq!(
            ends(b"\"bytes\":5"),
            Some(json!({"tcp": true, "title": "a,\"}b", "streams": [{"id": 1}]}))
        );
        assert_eq!(object(b"[1,2"), None);
        assert_eq!(object(&b"[".repeat(100_000)), None);
        assert_eq!(
            object(&[b"{\"a\":1,".as_slice(), &b"[".repeat(1000)].concat()),
            Some(json!({"a": 1}))
        );
    }
}
