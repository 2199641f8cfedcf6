//! One packet in full: its layers with the values of their fields.

use crate::field::{Field, Owner};
use crate::value::Value;
use crate::view::PacketView;
use capture::dissect::Protocol;

/// A value as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldText {
    /// Of which field.
    pub field: Field,
    /// The number, where it is one.
    pub number: Option<i64>,
    /// The text; from the file where the field's kind is text, and then not to be trusted.
    pub text: String,
}

/// A layer of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerDetail {
    /// Which protocol; [`Protocol::None`] for the frame.
    pub protocol: Protocol,
    /// Where its header begins, in bytes.
    pub start: usize,
    /// Length of the header.
    pub length: usize,
    /// Whether these are bytes of the reassembled packet, not of the frame.
    pub is_reassembled: bool,
    /// The fields that have a value.
    pub fields: Vec<FieldText>,
}

/// The frame and each of its layers.
#[must_use]
pub fn layers(view: &PacketView<'_>) -> Vec<LayerDetail> {
    let mut frame = Vec::new();
    for field in Field::ALL.iter().filter(|field| field.description().owner == Owner::Frame) {
        view.each_value(*field, |value| frame.push(text(*field, value)));
    }
    let mut found = vec![LayerDetail {
        protocol: Protocol::None,
        start: 0,
        length: view.packet.frame.len(),
        is_reassembled: false,
        fields: frame,
    }];
    let reassembled_at = view.reassembled_at();
    for (place, (protocol, layer)) in view.layers.iter().enumerate() {
        let mut fields = Vec::new();
        // Those with both ends' values repeat what is already there.
        let own = Field::ALL.iter().filter(|field| field.is_of(protocol) && !field.is_either());
        for field in own {
            view.each_value_at(*field, place, |value| fields.push(text(*field, value)));
        }
        found.push(LayerDetail {
            protocol,
            start: layer.start as usize,
            length: layer.header_len as usize,
            is_reassembled: reassembled_at.is_some_and(|it| place > it),
            fields,
        });
    }
    // What a payload says, and what the expert information says of the packet.
    let own = |field: &&Field| match field.description().owner {
        Owner::Application(_) | Owner::Expert => true,
        Owner::Frame | Owner::Header(_) => false,
    };
    if let Some(last) = found.last_mut() {
        for field in Field::ALL.iter().filter(own) {
            view.each_value(*field, |value| last.fields.push(text(*field, value)));
        }
    }
    found
}

fn text(field: Field, value: Value<'_>) -> FieldText {
    let mut text = String::new();
    // Formatting into a string cannot fail.
    let _ = value.write(field.description().kind, &mut text);
    let number = match value {
        Value::Integer(number) => Some(number),
        _ => None,
    };
    FieldText { field, number, text }
}
