//! Messages of iperf3's control connection.

use super::Emit;
use crate::field::Field;
use crate::iperf3_control::Message;
use crate::value::Value;
use crate::view::PacketView;

pub(super) fn values(view: &PacketView<'_>, payload: &[u8], field: Field, emit: Emit<'_>) {
    let Some(control) = &view.iperf3 else { return };
    control.each(payload, &mut |message| match (field, message) {
        (Field::Iperf3Cookie, Message::Cookie(cookie)) => emit(Value::Text(&cookie.to_string())),
        (Field::Iperf3State, Message::State(state)) => emit(Value::Integer((state as i8).into())),
        (Field::Iperf3Length, Message::Length(length)) => emit(Value::Integer(length.into())),
        _ => {}
    });
}
