/* The user headers that carry a Kafka record's parts: names and values as they stand in a message (spec E). */
#ifndef BRIDGE_MARKERS_H
#define BRIDGE_MARKERS_H

#define MARKER_VERSION  "kafka.v"        /* raw: 01; on every message that a gateway wrote */
#define MARKER_KEY      "kafka.key"      /* raw */
#define MARKER_VALUE    "kafka.value"    /* raw: "null" or "empty"; the payload is one byte 00 */
#define MARKER_TIME     "kafka.ts"       /* i64: ms; where the message's own time is another */
#define MARKER_ENVELOPE "kafka.envelope" /* raw: 01; the payload is an envelope */
#define MARKER_HEADER   "kafka.h."       /* and the header's name; raw */

#define MARKER_BYTES(marker) (sizeof(marker) - 1)

#define MAPPING_VERSION  1
#define ENVELOPE_VERSION 1
#endif
