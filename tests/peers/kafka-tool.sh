#!/bin/bash
# kafka-tool.sh NAME ARGS...   Apache Kafka's command line tools under the names of its distribution
#
# For example: kafka-tool.sh kafka-topics --bootstrap-server 127.0.0.1:9093 --list. A class name with dots works as well.
# env: KHEAP (-Xmx512m), KLL = log level (OFF), JTIER (1: the quickest start; 4 for throughput)
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
[ -n "${1:-}" ] || usage
need kafka/libs kafka
tools=org.apache.kafka.tools
case $1 in
    kafka-topics) class=$tools.TopicCommand ;;
    kafka-delete-records) class=$tools.DeleteRecordsCommand ;;
    kafka-get-offsets) class=$tools.GetOffsetShell ;;
    kafka-console-producer) class=$tools.ConsoleProducer ;;
    kafka-console-consumer) class=$tools.consumer.ConsoleConsumer ;;
    kafka-consumer-groups) class=$tools.consumer.group.ConsumerGroupCommand ;;
    kafka-producer-perf-test) class=$tools.ProducerPerformance ;;
    kafka-broker-api-versions) class=$tools.BrokerApiVersionsCommand ;;
    kafka-configs) class=$tools.ConfigCommand ;;
    kafka-cluster) class=$tools.ClusterTool ;;
    kafka-acls) class=org.apache.kafka.tools.AclCommand ;;
    *.*) class=$1 ;;
    *) echo "no such tool: $1" >&2; exit 2 ;;
esac
shift
exec java ${KHEAP:--Xmx512m} -XX:+UseSerialGC -Xshare:auto -XX:TieredStopAtLevel="${JTIER:-1}" -Dkll="${KLL:-OFF}" \
    -Dlog4j2.configurationFile="$PEERS/kafka/log4j2.properties" -cp "$PEERS_HOME/kafka/libs/*" "$class" "$@"
