package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// client-go sends Leases and Events as protobuf. This reads what those two have, by the field numbers of
// k8s.io/api (coordination/v1, core/v1) and k8s.io/apimachinery (meta/v1, runtime) 0.35.

var protobufMagic = []byte("k8s\x00")

var errProtobuf = errors.New("the protobuf message is not valid")

type field struct {
	name   string
	kind   string // string, int, time, micro, map, strings, or message
	fields message
}

type message map[int]field

var objectMeta = message{
	1: {name: "name", kind: "string"}, 2: {name: "generateName", kind: "string"}, 3: {name: "namespace", kind: "string"},
	5: {name: "uid", kind: "string"}, 6: {name: "resourceVersion", kind: "string"}, 7: {name: "generation", kind: "int"},
	8: {name: "creationTimestamp", kind: "time"}, 11: {name: "labels", kind: "map"}, 12: {name: "annotations", kind: "map"},
	14: {name: "finalizers", kind: "strings"},
}

var objectReference = message{
	1: {name: "kind", kind: "string"}, 2: {name: "namespace", kind: "string"}, 3: {name: "name", kind: "string"},
	4: {name: "uid", kind: "string"}, 5: {name: "apiVersion", kind: "string"}, 6: {name: "resourceVersion", kind: "string"},
	7: {name: "fieldPath", kind: "string"},
}

var messages = map[string]message{
	"Lease": {
		1: {name: "metadata", kind: "message", fields: objectMeta},
		2: {name: "spec", kind: "message", fields: message{
			1: {name: "holderIdentity", kind: "string"}, 2: {name: "leaseDurationSeconds", kind: "int"},
			3: {name: "acquireTime", kind: "micro"}, 4: {name: "renewTime", kind: "micro"}, 5: {name: "leaseTransitions", kind: "int"},
		}},
	},
	"Event": {
		1: {name: "metadata", kind: "message", fields: objectMeta}, 2: {name: "involvedObject", kind: "message", fields: objectReference},
		3: {name: "reason", kind: "string"}, 4: {name: "message", kind: "string"},
		5: {name: "source", kind: "message", fields: message{1: {name: "component", kind: "string"}, 2: {name: "host", kind: "string"}}},
		6: {name: "firstTimestamp", kind: "time"}, 7: {name: "lastTimestamp", kind: "time"}, 8: {name: "count", kind: "int"},
		9: {name: "type", kind: "string"}, 10: {name: "eventTime", kind: "micro"}, 12: {name: "action", kind: "string"},
		14: {name: "reportingComponent", kind: "string"}, 15: {name: "reportingInstance", kind: "string"},
	},
}

// unknown is the envelope: runtime.Unknown.
var unknown = message{
	1: {name: "type", kind: "message", fields: message{1: {name: "apiVersion", kind: "string"}, 2: {name: "kind", kind: "string"}}},
	2: {name: "raw", kind: "string"},
}

// fromProtobuf returns the object of a request's body.
func fromProtobuf(body []byte) (object, error) {
	envelope, err := decode(bytes.TrimPrefix(body, protobufMagic), unknown)
	if err != nil {
		return nil, err
	}
	types, _ := envelope["type"].(object)
	fields, known := messages[text(types, "kind")]
	if !known {
		return nil, errors.New("no protobuf of " + text(types, "kind"))
	}
	found, err := decode([]byte(text(envelope, "raw")), fields)
	if err != nil {
		return nil, err
	}
	found["apiVersion"], found["kind"] = types["apiVersion"], types["kind"]
	return found, nil
}

func decode(data []byte, fields message) (object, error) {
	found := object{}
	for len(data) > 0 {
		tag, size := binary.Uvarint(data)
		if size <= 0 {
			return nil, errProtobuf
		}
		data = data[size:]
		number, size := binary.Uvarint(data)
		if size <= 0 {
			return nil, errProtobuf
		}
		data = data[size:]
		var content []byte
		switch tag & 7 {
		case 0:
		case 2:
			if number > uint64(len(data)) {
				return nil, errProtobuf
			}
			content, data = data[:number], data[number:]
		default:
			return nil, errProtobuf
		}
		of, known := fields[int(tag>>3)]
		if !known {
			continue
		}
		if err := set(found, of, int64(number), content); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func set(found object, of field, number int64, content []byte) error {
	switch of.kind {
	case "string":
		if len(content) > 0 {
			found[of.name] = string(content)
		}
	case "int":
		found[of.name] = json.Number(strconv.FormatInt(number, 10))
	case "strings":
		listed, _ := found[of.name].([]any)
		found[of.name] = append(listed, string(content))
	case "map":
		entry, err := decode(content, message{1: {name: "key", kind: "string"}, 2: {name: "value", kind: "string"}})
		if err != nil {
			return err
		}
		of := mapOf(found, of.name)
		of[text(entry, "key")] = text(entry, "value")
	case "time", "micro":
		at, err := decode(content, message{1: {name: "seconds", kind: "int"}, 2: {name: "nanos", kind: "int"}})
		if err != nil || len(at) == 0 {
			return err
		}
		layout := time.RFC3339
		if of.kind == "micro" {
			layout = "2006-01-02T15:04:05.000000Z07:00"
		}
		found[of.name] = time.Unix(asInt(at["seconds"]), asInt(at["nanos"])).UTC().Format(layout)
	case "message":
		nested, err := decode(content, of.fields)
		if err != nil {
			return err
		}
		found[of.name] = nested
	}
	return nil
}

func mapOf(found object, name string) object {
	nested, _ := found[name].(object)
	if nested == nil {
		nested = object{}
		found[name] = nested
	}
	return nested
}
