package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sort"
	"strconv"
	"sync"
	"time"
)

type object = map[string]any

// failure is an answer other than success.
type failure struct {
	code    int
	reason  string
	message string
}

func notFound(kind, name string) *failure {
	return &failure{http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", kind, name)}
}

func conflict(kind, name string) *failure {
	return &failure{http.StatusConflict, "Conflict", fmt.Sprintf("%s %q: the object has been modified; please apply your changes to the latest version", kind, name)}
}

// A stored is one version of an object; it is never changed.
type stored struct {
	fields  object
	raw     []byte
	version uint64
}

// A change is one event of a watch, encoded once for all watches.
type change struct {
	version   uint64
	namespace string
	line      []byte
}

// A table holds the objects of one resource, and their changes since the start.
type table struct {
	resource
	mutex   sync.RWMutex
	objects map[string]*stored
	keys    []string // sorted; rebuilt when a key has come or gone
	stale   bool
	changes []change
	dropped int           // changes that are no longer kept, from the oldest
	oldest  uint64        // a watch from an older version is answered 410
	changed chan struct{} // closed at the next change
}

const keptChanges = 400_000

// A store holds all tables, and counts versions for all of them, as etcd does.
type store struct {
	mutex   sync.Mutex
	version uint64
	tables  map[string]*table
	times   *times
}

func newStore() *store {
	found := &store{tables: map[string]*table{}, version: 1, times: newTimes()}
	for _, r := range resources {
		found.tables[r.prefix()+"/"+r.plural] = &table{resource: r, objects: map[string]*stored{}, changed: make(chan struct{})}
	}
	return found
}

func (s *store) next() uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version++
	return s.version
}

func (s *store) current() uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.version
}

func metadata(fields object) object {
	found, _ := fields["metadata"].(object)
	if found == nil {
		found = object{}
		fields["metadata"] = found
	}
	return found
}

func text(fields object, name string) string {
	found, _ := fields[name].(string)
	return found
}

// put stores fields as the newest version and tells the watches. The table is locked.
func (s *store) put(t *table, key, event string, fields object) *stored {
	version := s.next()
	meta := metadata(fields)
	meta["resourceVersion"] = strconv.FormatUint(version, 10)
	fields["kind"], fields["apiVersion"] = t.kind, t.apiVersion()
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	found := &stored{fields, raw, version}
	if event == "DELETED" {
		delete(t.objects, key)
		t.stale = true
	} else {
		if _, known := t.objects[key]; !known {
			t.stale = true
		}
		t.objects[key] = found
	}
	var line bytes.Buffer
	line.Grow(len(raw) + 40)
	line.WriteString(`{"type":"` + event + `","object":`)
	line.Write(raw)
	line.WriteString("}\n")
	t.changes = append(t.changes, change{version, text(meta, "namespace"), line.Bytes()})
	if len(t.changes) > keptChanges {
		half := len(t.changes) / 2
		t.oldest = t.changes[half-1].version
		t.changes = append([]change(nil), t.changes[half:]...)
		t.dropped += half
	}
	close(t.changed)
	t.changed = make(chan struct{})
	return found
}

func (s *store) create(t *table, fields object) (*stored, *failure) {
	meta := metadata(fields)
	name := text(meta, "name")
	if name == "" {
		name = text(meta, "generateName") + strconv.FormatUint(s.current(), 36)
		meta["name"] = name
	}
	key := text(meta, "namespace") + "/" + name
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if _, known := t.objects[key]; known {
		return nil, &failure{http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", t.plural, name)}
	}
	meta["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	if text(meta, "uid") == "" {
		meta["uid"] = fmt.Sprintf("%08x-0000-4000-8000-%012x", len(t.objects), s.current())
	}
	if _, given := meta["generation"]; !given {
		meta["generation"] = 1
	}
	found := s.put(t, key, "ADDED", fields)
	s.times.note(t, key, found, true)
	return found, nil
}

// replace stores the fields that edit returns, which may change its argument.
func (s *store) replace(t *table, key string, status bool, edit func(object) (object, *failure)) (*stored, *failure) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	before, known := t.objects[key]
	if !known {
		return nil, notFound(t.plural, key)
	}
	after, failed := edit(clone(before.fields).(object))
	if failed != nil {
		return nil, failed
	}
	meta, old := metadata(after), metadata(before.fields)
	if wanted := text(meta, "resourceVersion"); wanted != "" && wanted != text(old, "resourceVersion") {
		return nil, conflict(t.plural, key)
	}
	if t.hasStatus {
		keep, other := after, before.fields
		if status {
			keep, other = clone(before.fields).(object), after
		}
		if found, given := other["status"]; given {
			keep["status"] = found
		} else {
			delete(keep, "status")
		}
		after = keep
		meta = metadata(after)
	}
	for _, name := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "namespace", "name"} {
		if found, given := old[name]; given {
			meta[name] = found
		}
	}
	if reflect.DeepEqual(after, before.fields) {
		return before, nil // as with the real one, such a write has no new version
	}
	if !status && !reflect.DeepEqual(after["spec"], before.fields["spec"]) {
		meta["generation"] = generation(old) + 1
	}
	if text(meta, "deletionTimestamp") != "" && len(finalizers(meta)) == 0 {
		return s.put(t, key, "DELETED", after), nil
	}
	found := s.put(t, key, "MODIFIED", after)
	s.times.note(t, key, found, false)
	return found, nil
}

func (s *store) remove(t *table, key string) (*stored, *failure) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	before, known := t.objects[key]
	if !known {
		return nil, notFound(t.plural, key)
	}
	after := clone(before.fields).(object)
	meta := metadata(after)
	if len(finalizers(meta)) > 0 {
		if text(meta, "deletionTimestamp") != "" {
			return before, nil
		}
		meta["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		meta["generation"] = generation(meta) + 1
		return s.put(t, key, "MODIFIED", after), nil
	}
	return s.put(t, key, "DELETED", after), nil
}

func finalizers(meta object) []any {
	found, _ := meta["finalizers"].([]any)
	return found
}

func generation(meta object) int64 {
	switch found := meta["generation"].(type) {
	case json.Number:
		value, _ := found.Int64()
		return value
	case int64:
		return found
	case int:
		return int64(found)
	}
	return 1
}

// sorted returns the keys in order. The table is locked for writing.
func (t *table) sorted() []string {
	if t.stale {
		t.keys = make([]string, 0, len(t.objects))
		for key := range t.objects {
			t.keys = append(t.keys, key)
		}
		sort.Strings(t.keys)
		t.stale = false
	}
	return t.keys
}

func clone(value any) any {
	switch found := value.(type) {
	case object:
		copied := make(object, len(found))
		for name, each := range found {
			copied[name] = clone(each)
		}
		return copied
	case []any:
		copied := make([]any, len(found))
		for index, each := range found {
			copied[index] = clone(each)
		}
		return copied
	}
	return value
}

// merge applies a merge patch (RFC 7386).
func merge(target, patch any) any {
	wanted, isObject := patch.(object)
	if !isObject {
		return patch
	}
	found, _ := target.(object)
	if found == nil {
		found = object{}
	}
	for name, each := range wanted {
		if each == nil {
			delete(found, name)
		} else {
			found[name] = merge(found[name], each)
		}
	}
	return found
}
