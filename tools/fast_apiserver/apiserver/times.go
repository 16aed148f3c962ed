package main

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// A row holds when things happened to one binding, in seconds since the start of this process; 0 for never.
type row struct {
	Created float64 `json:"created"`
	Placed  float64 `json:"placed"`  // the first version with clusters
	Changed float64 `json:"changed"` // the last version whose spec.clusters were others
	Settled float64 `json:"settled"` // the last version whose generation was observed
	Targets int     `json:"targets"`
	Writes  int     `json:"writes"`
	Changes int     `json:"changes"` // of spec.clusters
}

// times holds what is measured here, so that no process has to watch: bindings, and the longest time between renewals.
type times struct {
	mutex    sync.Mutex
	begin    time.Time
	bindings map[string]*row
	clusters map[string]string
	renewed  map[string]float64
	longest  map[string]float64
	requests map[string]int
}

func newTimes() *times {
	return &times{begin: time.Now(), bindings: map[string]*row{}, clusters: map[string]string{},
		renewed: map[string]float64{}, longest: map[string]float64{}, requests: map[string]int{}}
}

func (t *times) now() float64 { return time.Since(t.begin).Seconds() }

func (t *times) request(what string) {
	t.mutex.Lock()
	t.requests[what]++
	t.mutex.Unlock()
}

// note records a version that was stored just now.
func (t *times) note(of *table, key string, found *stored, created bool) {
	now := t.now()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch of.plural {
	case "leases":
		if before, known := t.renewed[key]; known && now-before > t.longest[key] {
			t.longest[key] = now - before
		}
		t.renewed[key] = now
	case bindings:
		t.binding(key, found, created, now)
	}
}

func (t *times) binding(key string, found *stored, created bool, now float64) {
	of := t.bindings[key]
	if of == nil || created {
		of = &row{Created: now}
		t.bindings[key] = of
	}
	if !created {
		of.Writes++
	}
	spec, _ := found.fields["spec"].(object)
	listed, _ := spec["clusters"].([]any)
	encoded, _ := json.Marshal(listed)
	if string(encoded) != t.clusters[key] {
		of.Changed, of.Targets = now, len(listed)
		of.Changes++
		t.clusters[key] = string(encoded)
	}
	if len(listed) > 0 && of.Placed == 0 {
		of.Placed = now
	}
	status, _ := found.fields["status"].(object)
	if asInt(status["schedulerObservedGeneration"]) == generation(metadata(found.fields)) {
		of.Settled = now
	}
}

// changed returns how many bindings with a prefix have had so many changes of spec.clusters. The times are locked.
func (t *times) changed(prefix string, least int) int {
	count := 0
	for key, each := range t.bindings {
		if each.Changes >= least && strings.HasPrefix(key, prefix) {
			count++
		}
	}
	return count
}

// renewals returns the longest time between two renewals of each Lease, or since the last one. The times are locked.
func (t *times) renewals() map[string]float64 {
	found := map[string]float64{}
	for key, at := range t.renewed {
		found[key] = max(t.longest[key], t.now()-at)
	}
	return found
}

// reset forgets everything but what is stored.
func (t *times) reset() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.requests, t.longest = map[string]int{}, map[string]float64{}
	for _, each := range t.bindings {
		each.Writes, each.Changes = 0, 0
	}
}

func (t *times) forget() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.bindings, t.clusters, t.renewed = map[string]*row{}, map[string]string{}, map[string]float64{}
}

func asInt(value any) int64 {
	number, isNumber := value.(json.Number)
	if !isNumber {
		return 0
	}
	found, _ := number.Int64()
	return found
}
