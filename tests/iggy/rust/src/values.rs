//! JSON of the line protocol from and to the SDK's types.

use std::collections::BTreeMap;
use std::str::FromStr;

use bytes::Bytes;
use iggy::prelude::*;
use serde_json::{Value, json};

/// Why a call failed: Iggy's code if the SDK named one.
pub struct Failure {
    pub code: Option<u32>,
    pub text: String,
}

impl Failure {
    pub fn text(text: impl Into<String>) -> Self {
        Self { code: None, text: text.into() }
    }
}

impl From<IggyError> for Failure {
    fn from(error: IggyError) -> Self {
        Self { code: Some(error.as_code()), text: error.to_string() }
    }
}

/// The arguments of one call.
pub struct Arguments<'a>(pub &'a Value);

impl Arguments<'_> {
    pub fn maybe(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn value(&self, name: &str) -> Result<&Value, Failure> {
        self.maybe(name).ok_or_else(|| Failure::text(format!("{name} is missing")))
    }

    pub fn maybe_text(&self, name: &str) -> Option<&str> {
        self.maybe(name).and_then(Value::as_str)
    }

    pub fn text(&self, name: &str) -> Result<&str, Failure> {
        self.maybe_text(name).ok_or_else(|| Failure::text(format!("{name} is missing")))
    }

    pub fn maybe_u64(&self, name: &str) -> Option<u64> {
        self.maybe(name).and_then(Value::as_u64)
    }

    pub fn u64(&self, name: &str) -> Result<u64, Failure> {
        self.maybe_u64(name).ok_or_else(|| Failure::text(format!("{name} is missing")))
    }

    pub fn u32(&self, name: &str) -> Result<u32, Failure> {
        u32::try_from(self.u64(name)?).map_err(|_| Failure::text(format!("{name} is too large")))
    }

    pub fn maybe_flag(&self, name: &str) -> Option<bool> {
        self.maybe(name).and_then(Value::as_bool)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.maybe_flag(name).unwrap_or(false)
    }

    pub fn id(&self, name: &str) -> Result<Identifier, Failure> {
        Ok(Identifier::named(self.text(name)?)?)
    }

    pub fn consumer(&self) -> Result<Consumer, Failure> {
        let id = self.id("consumer")?;
        Ok(match self.maybe_u64("kind").unwrap_or(1) {
            3 => Consumer::external_group(id),
            2 => Consumer::group(id),
            _ => Consumer::new(id),
        })
    }

    pub fn partitioning(&self) -> Result<Partitioning, Failure> {
        let to = self.value("to")?;
        if let Some(key) = to.get("key").and_then(Value::as_str) {
            return Ok(Partitioning::messages_key(&from_hex(key)?)?);
        }
        match to.get("partition").and_then(Value::as_u64) {
            Some(partition) => Ok(Partitioning::partition_id(partition as u32)),
            None => Ok(Partitioning::balanced()),
        }
    }

    pub fn strategy(&self) -> Result<PollingStrategy, Failure> {
        let value = self.maybe_u64("value").unwrap_or(0);
        Ok(match self.text("how")? {
            "first" => PollingStrategy::first(),
            "last" => PollingStrategy::last(),
            "next" => PollingStrategy::next(),
            "timestamp" => PollingStrategy::timestamp(value.into()),
            _ => PollingStrategy::offset(value),
        })
    }
}

fn from_hex(text: &str) -> Result<Vec<u8>, Failure> {
    let digits = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()));
    digits.collect::<Option<Vec<u8>>>().ok_or_else(|| Failure::text("not hexadecimal"))
}

fn to_hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn field_of<T>(kind: &str, text: &str) -> Result<HeaderField<T>, Failure> {
    fn number<N: FromStr>(text: &str) -> Result<N, Failure> {
        text.parse().map_err(|_| Failure::text(format!("not a number: {text}")))
    }
    let (kind, bytes) = match kind {
        "raw" => (HeaderKind::Raw, from_hex(text)?),
        "string" => (HeaderKind::String, text.as_bytes().to_vec()),
        "bool" => (HeaderKind::Bool, vec![u8::from(text == "true")]),
        "int8" => (HeaderKind::Int8, number::<i8>(text)?.to_le_bytes().to_vec()),
        "int16" => (HeaderKind::Int16, number::<i16>(text)?.to_le_bytes().to_vec()),
        "int32" => (HeaderKind::Int32, number::<i32>(text)?.to_le_bytes().to_vec()),
        "int64" => (HeaderKind::Int64, number::<i64>(text)?.to_le_bytes().to_vec()),
        "int128" => (HeaderKind::Int128, number::<i128>(text)?.to_le_bytes().to_vec()),
        "uint8" => (HeaderKind::Uint8, number::<u8>(text)?.to_le_bytes().to_vec()),
        "uint16" => (HeaderKind::Uint16, number::<u16>(text)?.to_le_bytes().to_vec()),
        "uint32" => (HeaderKind::Uint32, number::<u32>(text)?.to_le_bytes().to_vec()),
        "uint64" => (HeaderKind::Uint64, number::<u64>(text)?.to_le_bytes().to_vec()),
        "uint128" => (HeaderKind::Uint128, number::<u128>(text)?.to_le_bytes().to_vec()),
        "float32" => (HeaderKind::Float32, number::<f32>(text)?.to_le_bytes().to_vec()),
        "float64" => (HeaderKind::Float64, number::<f64>(text)?.to_le_bytes().to_vec()),
        other => return Err(Failure::text(format!("no header kind {other}"))),
    };
    Ok(HeaderField::from_raw(kind, &bytes)?)
}

fn field_to<T>(field: &HeaderField<T>) -> Result<[String; 2], Failure> {
    let (kind, text) = match field.kind() {
        HeaderKind::Raw => ("raw", to_hex(field.as_bytes())),
        HeaderKind::String => ("string", field.as_str()?.to_owned()),
        HeaderKind::Bool => ("bool", field.as_bool()?.to_string()),
        HeaderKind::Int8 => ("int8", field.as_int8()?.to_string()),
        HeaderKind::Int16 => ("int16", field.as_int16()?.to_string()),
        HeaderKind::Int32 => ("int32", field.as_int32()?.to_string()),
        HeaderKind::Int64 => ("int64", field.as_int64()?.to_string()),
        HeaderKind::Int128 => ("int128", field.as_int128()?.to_string()),
        HeaderKind::Uint8 => ("uint8", field.as_uint8()?.to_string()),
        HeaderKind::Uint16 => ("uint16", field.as_uint16()?.to_string()),
        HeaderKind::Uint32 => ("uint32", field.as_uint32()?.to_string()),
        HeaderKind::Uint64 => ("uint64", field.as_uint64()?.to_string()),
        HeaderKind::Uint128 => ("uint128", field.as_uint128()?.to_string()),
        HeaderKind::Float32 => ("float32", format!("{:?}", field.as_float32()?)),
        HeaderKind::Float64 => ("float64", format!("{:?}", field.as_float64()?)),
    };
    Ok([kind.to_owned(), text])
}

pub fn messages_to(list: &Value) -> Result<Vec<IggyMessage>, Failure> {
    list.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(message_to).collect()
}

fn message_to(message: &Value) -> Result<IggyMessage, Failure> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    for entry in message["headers"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let key: HeaderKey = field_of(&text(&entry[0]), &text(&entry[1]))?;
        let value: HeaderValue = field_of(&text(&entry[2]), &text(&entry[3]))?;
        headers.insert(key, value);
    }
    let id = message["id"].as_str().map(|id| id.parse().map_err(|_| Failure::text("bad id"))).transpose()?;
    let payload = Bytes::from(from_hex(&text(&message["payload"]))?);
    let builder = IggyMessage::builder().maybe_id(id).payload(payload);
    Ok(builder.maybe_user_headers((!headers.is_empty()).then_some(headers)).build()?)
}

pub fn message_of(partition: u32, message: &IggyMessage) -> Result<Value, Failure> {
    let mut headers = Vec::new();
    for (key, value) in message.user_headers_map()?.unwrap_or_default() {
        let ([key_kind, key], [value_kind, value]) = (field_to(&key)?, field_to(&value)?);
        headers.push([key_kind, key, value_kind, value]);
    }
    headers.sort();
    let header = &message.header;
    Ok(json!({"partition": partition, "offset": header.offset, "id": header.id.to_string(), "payload": to_hex(&message.payload),
              "headers": headers, "timestamp": header.timestamp, "origin": header.origin_timestamp}))
}

pub fn polled(found: PolledMessages) -> Result<Value, Failure> {
    let partition = found.partition_id;
    found.messages.iter().map(|message| message_of(partition, message)).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn flag(item: &Value, name: &str) -> bool {
    item.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn numbered<T>(item: &Value, name: &str, of: impl Fn(&Value) -> T) -> Option<BTreeMap<usize, T>> {
    let entries = item.get(name)?.as_object()?;
    Some(entries.iter().filter_map(|(id, entry)| Some((id.parse().ok()?, of(entry)))).collect())
}

pub fn permissions_of(value: Option<&Value>) -> Result<Option<Permissions>, Failure> {
    let Some(value) = value else { return Ok(None) };
    let none = json!({});
    let global = value.get("global").unwrap_or(&none);
    let topic = |item: &Value| TopicPermissions {
        manage_topic: flag(item, "manage_topic"),
        read_topic: flag(item, "read_topic"),
        poll_messages: flag(item, "poll_messages"),
        send_messages: flag(item, "send_messages"),
    };
    let stream = |item: &Value| StreamPermissions {
        manage_stream: flag(item, "manage_stream"),
        read_stream: flag(item, "read_stream"),
        manage_topics: flag(item, "manage_topics"),
        read_topics: flag(item, "read_topics"),
        poll_messages: flag(item, "poll_messages"),
        send_messages: flag(item, "send_messages"),
        topics: numbered(item, "topics", topic),
    };
    Ok(Some(Permissions {
        global: GlobalPermissions {
            manage_servers: flag(global, "manage_servers"),
            read_servers: flag(global, "read_servers"),
            manage_users: flag(global, "manage_users"),
            read_users: flag(global, "read_users"),
            manage_streams: flag(global, "manage_streams"),
            read_streams: flag(global, "read_streams"),
            manage_topics: flag(global, "manage_topics"),
            read_topics: flag(global, "read_topics"),
            poll_messages: flag(global, "poll_messages"),
            send_messages: flag(global, "send_messages"),
        },
        streams: numbered(value, "streams", stream),
    }))
}

/// Only what is granted, as the other drivers write it.
pub fn permissions_to(permissions: Option<Permissions>) -> Value {
    fn granted(value: Value) -> Value {
        let Value::Object(fields) = value else { return value };
        let kept = fields.into_iter().filter_map(|(name, field)| match field {
            Value::Bool(false) | Value::Null => None,
            Value::Object(ref inner) if inner.is_empty() && (name == "streams" || name == "topics") => None,
            other => Some((name, granted(other))),
        });
        Value::Object(kept.collect())
    }
    permissions.map_or(Value::Null, |permissions| granted(serde_json::to_value(permissions).unwrap_or_default()))
}
