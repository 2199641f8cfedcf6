//! JSON formatted like iperf3's: tabs, array elements on one line, integers without a
//! decimal point.

use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// With line breaks.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    written(value, Layout { depth: 0, broken: true })
}

/// On one line.
pub(crate) fn compact(value: &impl Serialize) -> String {
    written(value, Layout { depth: 0, broken: false })
}

fn written(value: &impl Serialize, layout: Layout) -> String {
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, layout);
    // Cannot fail: writing to memory succeeds, and all keys are strings.
    match value.serialize(&mut writer) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        Err(_) => "{}".to_owned(),
    }
}

struct Layout {
    depth: usize,
    broken: bool,
}

impl Layout {
    fn line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        if self.broken {
            writer.write_all(b"\n")?;
            writer.write_all("\t".repeat(self.depth).as_bytes())?;
        }
        Ok(())
    }
}

impl Formatter for Layout {
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        self.line(writer)?;
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.broken { b":\t" } else { b":" })
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        writer.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        match (first, self.broken) {
            (true, _) => Ok(()),
            (false, true) => writer.write_all(b", "),
            (false, false) => writer.write_all(b","),
        }
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // Integers below 2^53 are exact in a double.
        if value.fract() == 0.0 && value.abs() < 9e15 {
            return write!(writer, "{value:.0}");
        }
        write!(writer, "{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn laid_out_as_iperf3_does() {
        let value = json!({"a": [{"b": 1.0}, {"b": 0.5}], "c": {}, "d": []});
        let text = "{\n\t\"a\":\t[{\n\t\t\t\"b\":\t1\n\t\t}, {\n\t\t\t\"b\":\t0.5\n\t\t}],\
                    \n\t\"c\":\t{\n\t},\n\t\"d\":\t[]\n}";
        assert_eq!(pretty(&value), text);
        assert_eq!(compact(&value), r#"{"a":[{"b":1},{"b":0.5}],"c":{},"d":[]}"#);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&pretty(&value)).unwrap()["a"][1],
            json!({"b": 0.5})
        );
    }
}
