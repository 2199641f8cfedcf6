//! Fields of forms in parts: `multipart/form-data` (RFC 7578).

/// Most fields that are read; those behind are left out.
const MAX_FIELDS: usize = 64;

/// A field: its name and value.
pub(crate) type Field = (String, String);

/// The boundary that a Content-Type names; none where it is not `multipart/form-data`.
pub(crate) fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let parameters = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
    let (_, boundary) =
        parameters.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"))?;
    let boundary = boundary.trim().trim_matches('"');
    // RFC 2046, section 5.1.1.
    (1..=70).contains(&boundary.len()).then_some(boundary)
}

/// The fields of a multipart form; `None` where it is malformed.
pub(crate) fn multipart(body: &[u8], boundary: &str) -> Option<Vec<Field>> {
    let text = String::from_utf8_lossy(body);
    let delimiter = format!("--{boundary}");
    // What is before the first delimiter is a preamble (RFC 2046, section 5.1.1).
    let (_, mut rest) = text.split_once(&delimiter)?;
    let delimiter = format!("\r\n{delimiter}");
    let mut fields = Vec::new();
    while !rest.starts_with("--") && fields.len() < MAX_FIELDS {
        let (part, after) = rest.strip_prefix("\r\n")?.split_once(&delimiter)?;
        let (headers, value) = match part.strip_prefix("\r\n") {
            Some(value) => ("", value),
            None => part.split_once("\r\n\r\n")?,
        };
        if let Some(name) = part_name(headers) {
            fields.push((name.to_owned(), value.to_owned()));
        }
        rest = after;
    }
    Some(fields)
}

/// The field's name in a part's headers.
fn part_name(headers: &str) -> Option<&str> {
    let disposition = headers.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    let parameters = disposition.split(';').filter_map(|parameter| parameter.split_once('='));
    let (_, name) = parameters.into_iter().find(|(name, _)| name.trim() == "name")?;
    Some(name.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Vec<Field> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn multipart_forms_are_read() {
        let boundary = boundary("multipart/form-data; boundary=----WebKitFormBoundaryX").unwrap();
        let body = "------WebKitFormBoundaryX\r\n\
            Content-Disposition: form-data; name=\"dl\"\r\n\r\n93.5\r\n\
            ------WebKitFormBoundaryX\r\n\
            Content-Disposition: form-data; name=\"log\"\r\nX: y\r\n\r\na\r\n\r\nb\r\n\
            ------WebKitFormBoundaryX--\r\n";
        let read = multipart(body.as_bytes(), boundary).unwrap();
        assert_eq!(read, fields(&[("dl", "93.5"), ("log", "a\r\n\r\nb")]));
        for end in 0..body.len() - 4 {
            assert_eq!(multipart(&body.as_bytes()[..end], boundary), None, "{end} bytes");
        }
    }

    #[test]
    fn other_content_types_have_no_boundary() {
        assert_eq!(boundary("application/x-www-form-urlencoded"), None);
        assert_eq!(boundary("multipart/form-data; boundary="), None);
        assert_eq!(boundary(&format!("multipart/form-data; boundary={}", "x".repeat(71))), None);
        assert_eq!(boundary("Multipart/Form-Data; charset=x; BOUNDARY=\"a b\""), Some("a b"));
    }
}
