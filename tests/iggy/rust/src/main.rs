//! The crates.io SDK `iggy` (protocol 0.12.2) behind the line protocol of ../README.md.

mod values;

use std::time::Duration;

use futures_util::StreamExt;
use iggy::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use values::{Arguments, Failure, message_of, messages_to, permissions_of, permissions_to, polled};

const LIMIT: Duration = Duration::from_secs(20);
const NO_VALUE: Value = Value::Null;

struct Driver {
    client: Option<IggyClient>,
}

fn confirmed(response: SendMessagesResponse) -> Result<Value, Failure> {
    match response.confirmations.as_slice() {
        [one] => Ok(json!([one.partition_id, one.base_offset])),
        other => Err(Failure::text(format!("{} confirmations", other.len()))),
    }
}

impl Driver {
    fn client(&self) -> Result<&IggyClient, Failure> {
        self.client.as_ref().ok_or_else(|| Failure::text("not connected"))
    }

    async fn call(&mut self, name: &str, arguments: &Arguments<'_>) -> Result<Value, Failure> {
        match name {
            "hello" => {
                Ok(json!({"sdk": "iggy 0.11.1-edge.9", "protocol": "0.12.2", "can": ["fetch", "idempotent", "wait", "external-group"]}))
            }
            "connect" => {
                let roots = arguments.maybe_text("ca").map(str::to_owned);
                let config = TcpClientConfig {
                    server_address: arguments.text("address")?.to_owned(),
                    tls_enabled: roots.is_some(),
                    tls_domain: "localhost".to_owned(),
                    tls_ca_file: roots,
                    ..Default::default()
                };
                let tcp = TcpClient::create(std::sync::Arc::new(config))?;
                let client = IggyClient::new(ClientWrapper::Tcp(tcp));
                client.connect().await?;
                self.client = Some(client);
                Ok(NO_VALUE)
            }
            _ => {
                if let Some(answer) = self.session(name, arguments).await? {
                    return Ok(answer);
                }
                if let Some(answer) = self.structure(name, arguments).await? {
                    return Ok(answer);
                }
                if let Some(answer) = self.data(name, arguments).await? {
                    return Ok(answer);
                }
                if let Some(answer) = self.readers(name, arguments).await? {
                    return Ok(answer);
                }
                if let Some(answer) = self.groups(name, arguments).await? {
                    return Ok(answer);
                }
                self.users(name, arguments).await
            }
        }
    }

    async fn session(&self, name: &str, a: &Arguments<'_>) -> Result<Option<Value>, Failure> {
        let client = self.client()?;
        let answer = match name {
            "login" => client.login_user(a.text("user")?, a.text("password")?).await.map(|_| NO_VALUE)?,
            "login_token" => client.login_with_personal_access_token(a.text("token")?).await.map(|_| NO_VALUE)?,
            "logout" => client.logout_user().await.map(|()| NO_VALUE)?,
            "ping" => client.ping().await.map(|()| NO_VALUE)?,
            "stats" => {
                let s = client.get_stats().await?;
                json!({"streams": s.streams_count, "topics": s.topics_count, "partitions": s.partitions_count,
                       "messages": s.messages_count, "clients": s.clients_count, "consumer_groups": s.consumer_groups_count,
                       "pid": s.process_id})
            }
            "cluster" => {
                let found = client.get_cluster_metadata().await?;
                let node = |n: &ClusterNode| {
                    json!({"address": format!("{}:{}", n.ip, n.endpoints.tcp), "leader": n.role == ClusterNodeRole::Leader})
                };
                Value::Array(found.nodes.iter().map(node).collect())
            }
            "me" => {
                let me = client.get_me().await?;
                json!({"client": me.client_id, "user": me.user_id})
            }
            "options" => {
                let scope = match a.text("scope")? {
                    "topic" => OptionsScope::Topic,
                    "stream" => OptionsScope::Stream,
                    _ => OptionsScope::User,
                };
                let mut keys: Vec<_> = client.describe_options(scope).await?.into_iter().map(|option| option.key).collect();
                keys.sort();
                json!(keys)
            }
            _ => return Ok(None),
        };
        Ok(Some(answer))
    }

    async fn structure(&self, name: &str, a: &Arguments<'_>) -> Result<Option<Value>, Failure> {
        let client = self.client()?;
        let answer = match name {
            "create_stream" => client.create_stream(a.text("name")?, &StreamCreateOptions::default()).await.map(|_| NO_VALUE)?,
            "streams" => {
                let mut names: Vec<_> = client.get_streams().await?.into_iter().map(|stream| stream.name).collect();
                names.sort();
                json!(names)
            }
            "stream" => match client.get_stream(&a.id("stream")?).await? {
                None => NO_VALUE,
                Some(found) => {
                    let mut topics: Vec<_> = found.topics.iter().map(|topic| topic.name.clone()).collect();
                    topics.sort();
                    json!({"id": found.id, "name": found.name, "topics": topics, "messages": found.messages_count})
                }
            },
            "rename_stream" => {
                let options = StreamUpdateOptions { name: Some(a.text("name")?.to_owned()), ..Default::default() };
                client.update_stream(&a.id("stream")?, &options).await.map(|()| NO_VALUE)?
            }
            "delete_stream" => client.delete_stream(&a.id("stream")?).await.map(|()| NO_VALUE)?,
            "create_topic" => {
                let options = TopicCreateOptions {
                    partitions_count: Some(a.u32("partitions")?),
                    message_expiry: a.maybe_u64("expiry_us").map(|us| IggyExpiry::ExpireDuration(us.into())),
                    ..Default::default()
                };
                client.create_topic(&a.id("stream")?, a.text("topic")?, &options).await.map(|_| NO_VALUE)?
            }
            "topics" => {
                let mut names: Vec<_> = client.get_topics(&a.id("stream")?).await?.into_iter().map(|topic| topic.name).collect();
                names.sort();
                json!(names)
            }
            "topic" => match client.get_topic(&a.id("stream")?, &a.id("topic")?).await? {
                None => NO_VALUE,
                Some(found) => {
                    let expiry = match found.resolved_options().message_expiry {
                        IggyExpiry::ExpireDuration(duration) => json!(duration.as_micros()),
                        _ => NO_VALUE,
                    };
                    let partition = |p: &Partition| json!({"id": p.id, "offset": p.current_offset, "messages": p.messages_count});
                    let partitions: Vec<_> = found.partitions.iter().map(partition).collect();
                    json!({"id": found.id, "name": found.name, "messages": found.messages_count, "partitions": partitions, "expiry_us": expiry})
                }
            },
            "update_topic" => {
                let options = TopicUpdateOptions {
                    name: a.maybe_text("name").map(str::to_owned),
                    message_expiry: a.maybe_u64("expiry_us").map(|us| IggyExpiry::ExpireDuration(us.into())),
                    ..Default::default()
                };
                client.update_topic(&a.id("stream")?, &a.id("topic")?, &options).await.map(|()| NO_VALUE)?
            }
            "delete_topic" => client.delete_topic(&a.id("stream")?, &a.id("topic")?).await.map(|()| NO_VALUE)?,
            "add_partitions" => {
                client.create_partitions(&a.id("stream")?, &a.id("topic")?, a.u32("count")?).await.map(|()| NO_VALUE)?
            }
            "drop_partitions" => {
                client.delete_partitions(&a.id("stream")?, &a.id("topic")?, a.u32("count")?).await.map(|()| NO_VALUE)?
            }
            "drop_segments" => {
                let (partition, count) = (a.u32("partition")?, a.u32("count")?);
                client.delete_segments(&a.id("stream")?, &a.id("topic")?, partition, count).await.map(|()| NO_VALUE)?
            }
            _ => return Ok(None),
        };
        Ok(Some(answer))
    }

    async fn data(&self, name: &str, a: &Arguments<'_>) -> Result<Option<Value>, Failure> {
        let client = self.client()?;
        let answer = match name {
            "send" => {
                let mut messages = messages_to(a.value("messages")?)?;
                confirmed(client.send_messages(&a.id("stream")?, &a.id("topic")?, &a.partitioning()?, &mut messages).await?)?
            }
            "produce" => {
                let builder = client.producer(a.text("stream")?, a.text("topic")?)?.partitioning(a.partitioning()?);
                let builder = if a.flag("idempotent") { builder.idempotent() } else { builder };
                let builder = builder.do_not_create_stream_if_not_exists().do_not_create_topic_if_not_exists();
                let producer = builder.build();
                producer.init().await?;
                producer.send(messages_to(a.value("messages")?)?).await?;
                producer.shutdown().await;
                NO_VALUE
            }
            "poll" => {
                let mut options = PollOptions { count: a.u32("count")?, max_wait: IggyDuration::from(0), ..Default::default() };
                if let Some(ms) = a.maybe_u64("wait_ms") {
                    options.max_wait = IggyDuration::from(ms * 1000);
                }
                if a.flag("commit") {
                    options.commit = CommitPolicy::OnRead;
                }
                let (partition, consumer) = (a.u32("partition")?, Consumer::new(a.id("consumer")?));
                polled(client.poll_messages(&a.id("stream")?, &a.id("topic")?, partition, &consumer, &a.strategy()?, options).await?)?
            }
            "poll_group" => self.poll_group(a).await?,
            "store_offset" => {
                let (partition, offset) = (Some(a.u32("partition")?), a.u64("offset")?);
                client.store_consumer_offset(&a.consumer()?, &a.id("stream")?, &a.id("topic")?, partition, offset).await.map(|()| NO_VALUE)?
            }
            "get_offset" => {
                let partition = Some(a.u32("partition")?);
                let found = client.get_consumer_offset(&a.consumer()?, &a.id("stream")?, &a.id("topic")?, partition).await?;
                found.map_or(NO_VALUE, |offset| json!(offset.stored_offset))
            }
            "delete_offset" => {
                let partition = Some(a.u32("partition")?);
                client.delete_consumer_offset(&a.consumer()?, &a.id("stream")?, &a.id("topic")?, partition).await.map(|()| NO_VALUE)?
            }
            _ => return Ok(None),
        };
        Ok(Some(answer))
    }

    /// The low-level SDK polls one partition: as a member it asks which ones are its own, and takes the first with messages.
    async fn poll_group(&self, a: &Arguments<'_>) -> Result<Value, Failure> {
        let client = self.client()?;
        let (stream, topic, group) = (a.id("stream")?, a.id("topic")?, a.id("group")?);
        let consumer = Consumer::group(group.clone());
        let assignment = client.sync_consumer_group(&stream, &topic, &group).await?;
        for partition in assignment.map(|found| found.partitions).unwrap_or_default() {
            let commit = if a.flag("commit") { CommitPolicy::OnRead } else { CommitPolicy::Manual };
            let options = PollOptions { count: a.u32("count")?, max_wait: IggyDuration::from(0), commit, ..Default::default() };
            let found = client.poll_messages(&stream, &topic, partition, &consumer, &PollingStrategy::next(), options).await?;
            if found.count > 0 {
                return polled(found);
            }
        }
        Ok(json!([]))
    }

    async fn readers(&self, name: &str, a: &Arguments<'_>) -> Result<Option<Value>, Failure> {
        let client = self.client()?;
        let count = |a: &Arguments<'_>| a.u32("count").map(|count| count as usize);
        let mut found = Vec::new();
        match name {
            // Reads several partitions with one FetchMessages request at a time.
            "fetch" => {
                let consumer = Consumer::new(a.id("consumer")?);
                let builder = client.reader(&a.id("stream")?, &a.id("topic")?, &consumer);
                let mut reader = builder.partitions(0..a.u32("partitions")?).start(PollingStrategy::first()).build().await?;
                while found.len() < count(a)? {
                    let batch = reader.next().await.map_err(|error| Failure::text(format!("{error:?}")))?;
                    for message in &batch.messages {
                        found.push(message_of(batch.partition_id, message)?);
                    }
                }
                reader.close().await?;
            }
            "consume" => {
                let commit = AutoCommit { interval: None, every: Some(CommitEvery::Message), after: CommitAfter::Delivery };
                let commit = if a.flag("on_read") { CommitPolicy::OnRead } else { CommitPolicy::Auto(commit) };
                let options = PollOptions { commit, ..Default::default() };
                let builder = client.consumer_group(a.text("group")?, a.text("stream")?, a.text("topic")?)?;
                let builder = builder.create_consumer_group_if_not_exists().polling_strategy(PollingStrategy::next());
                let mut consumer = builder.poll_options(options).build();
                consumer.init().await?;
                while found.len() < count(a)? {
                    match consumer.next().await {
                        Some(Ok(received)) => found.push(message_of(received.partition_id, &received.message)?),
                        Some(Err(error)) => return Err(Failure::text(format!("{error:?}"))),
                        None => break,
                    }
                }
                consumer.shutdown().await?;
            }
            _ => return Ok(None),
        }
        Ok(Some(Value::Array(found)))
    }

    async fn groups(&self, name: &str, a: &Arguments<'_>) -> Result<Option<Value>, Failure> {
        let client = self.client()?;
        if !["create_group", "groups", "group", "delete_group", "join", "leave"].contains(&name) {
            return Ok(None);
        }
        let (stream, topic) = (a.id("stream")?, a.id("topic")?);
        let answer = match name {
            "create_group" => client.create_consumer_group(&stream, &topic, a.text("group")?).await.map(|_| NO_VALUE)?,
            "groups" => {
                let mut names: Vec<_> = client.get_consumer_groups(&stream, &topic).await?.into_iter().map(|group| group.name).collect();
                names.sort();
                json!(names)
            }
            "group" => match client.get_consumer_group(&stream, &topic, &a.id("group")?).await? {
                None => NO_VALUE,
                Some(found) => {
                    let mut members: Vec<_> = found.members.into_iter().map(|member| member.partitions).collect();
                    members.sort();
                    json!({"id": found.id, "name": found.name, "members": members})
                }
            },
            "delete_group" => client.delete_consumer_group(&stream, &topic, &a.id("group")?).await.map(|()| NO_VALUE)?,
            "join" => client.join_consumer_group(&stream, &topic, &a.id("group")?).await.map(|()| NO_VALUE)?,
            _ => client.leave_consumer_group(&stream, &topic, &a.id("group")?).await.map(|()| NO_VALUE)?,
        };
        Ok(Some(answer))
    }

    async fn users(&self, name: &str, a: &Arguments<'_>) -> Result<Value, Failure> {
        let client = self.client()?;
        let status = |active: bool| if active { UserStatus::Active } else { UserStatus::Inactive };
        let done = match name {
            "create_user" => {
                let active = status(a.maybe_flag("active").unwrap_or(true));
                let (permissions, options) = (permissions_of(a.maybe("permissions"))?, UserCreateOptions::default());
                client.create_user(a.text("name")?, a.text("password")?, active, permissions, &options).await.map(|_| NO_VALUE)?
            }
            "users" => {
                let mut names: Vec<_> = client.get_users().await?.into_iter().map(|user| user.username).collect();
                names.sort();
                json!(names)
            }
            "user" => match client.get_user(&a.id("user")?).await? {
                None => NO_VALUE,
                Some(found) => json!({"id": found.id, "name": found.username, "active": found.status == UserStatus::Active,
                                      "permissions": permissions_to(found.permissions)}),
            },
            "update_user" => {
                let (username, status) = (a.maybe_text("name").map(str::to_owned), a.maybe_flag("active").map(status));
                let options = UserUpdateOptions { username, status, ..Default::default() };
                client.update_user(&a.id("user")?, &options).await.map(|()| NO_VALUE)?
            }
            "permit" => client.update_permissions(&a.id("user")?, permissions_of(a.maybe("permissions"))?).await.map(|()| NO_VALUE)?,
            "change_password" => client.change_password(&a.id("user")?, a.text("old")?, a.text("new")?).await.map(|()| NO_VALUE)?,
            "delete_user" => client.delete_user(&a.id("user")?).await.map(|()| NO_VALUE)?,
            "create_token" => {
                let expiry = PersonalAccessTokenExpiry::NeverExpire;
                json!(client.create_personal_access_token(a.text("name")?, expiry).await?.token)
            }
            "tokens" => {
                let mut names: Vec<_> = client.get_personal_access_tokens().await?.into_iter().map(|token| token.name).collect();
                names.sort();
                json!(names)
            }
            "delete_token" => client.delete_personal_access_token(a.text("name")?).await.map(|()| NO_VALUE)?,
            other => return Err(Failure::text(format!("no call named {other}"))),
        };
        Ok(done)
    }
}

async fn answer(driver: &mut Driver, line: &str) -> Result<Value, Failure> {
    let request: Value = serde_json::from_str(line).map_err(|error| Failure::text(error.to_string()))?;
    let arguments = Arguments(&request);
    let call = driver.call(arguments.text("call")?, &arguments);
    tokio::time::timeout(LIMIT, call).await.unwrap_or_else(|_| Err(Failure::text(format!("no answer within {LIMIT:?}"))))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut driver = Driver { client: None };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match answer(&mut driver, &line).await {
            Ok(value) => println!("{}", json!({"ok": value})),
            Err(failure) => println!("{}", json!({"error": failure.code, "text": failure.text})),
        }
    }
}
