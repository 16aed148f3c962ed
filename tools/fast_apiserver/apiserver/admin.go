package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// admin serves the benchmark.
//
//	POST /admin/load          objects, one per line, are created
//	POST /admin/patch?rate=N  merge patches {"path": ..., "patch": ...}, one per line, N per second (0: as fast as it goes)
//	GET  /admin/times         the longest time between renewals, and requests; with ?bindings=1 when what happened to each;
//	                          with ?changed=PREFIX&least=N how many have had so many changes of spec.clusters
//	POST /admin/reset         requests, writes and renewals are counted from now on
//	POST /admin/clear         all objects are deleted, without events
func (s *server) admin(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/admin/load":
		s.load(w, r)
	case "/admin/patch":
		s.patch(w, r)
	case "/admin/reset":
		s.store.times.reset()
		answer(w, 200, object{})
	case "/admin/clear":
		s.clear()
		answer(w, 200, object{})
	case "/admin/times":
		times := s.store.times
		times.mutex.Lock()
		defer times.mutex.Unlock()
		found := object{"now": times.now(), "longest": times.renewals(), "requests": times.requests}
		if prefix := r.URL.Query().Get("changed"); prefix != "" {
			least, _ := strconv.Atoi(r.URL.Query().Get("least"))
			found["changed"] = times.changed(prefix, least)
		}
		if r.URL.Query().Get("bindings") != "" {
			found["bindings"] = times.bindings
		}
		answer(w, 200, found)
	default:
		refuse(w, &failure{404, "NotFound", r.URL.Path})
	}
}

func (s *server) tableOf(fields object) *table {
	apiVersion, kind := text(fields, "apiVersion"), text(fields, "kind")
	for _, t := range s.store.tables {
		if t.kind == kind && t.apiVersion() == apiVersion {
			return t
		}
	}
	return nil
}

func (s *server) load(w http.ResponseWriter, r *http.Request) {
	decoder := json.NewDecoder(r.Body)
	decoder.UseNumber()
	count := 0
	for {
		fields := object{}
		err := decoder.Decode(&fields)
		if err == io.EOF {
			break
		}
		t := s.tableOf(fields)
		if err != nil || t == nil {
			refuse(w, &failure{400, "BadRequest", "no object of a known kind"})
			return
		}
		if _, failed := s.store.create(t, fields); failed != nil {
			refuse(w, failed)
			return
		}
		count++
	}
	answer(w, 200, object{"count": count})
}

func (s *server) patch(w http.ResponseWriter, r *http.Request) {
	rate, _ := strconv.ParseFloat(r.URL.Query().Get("rate"), 64)
	decoder := json.NewDecoder(r.Body)
	decoder.UseNumber()
	begin, count := time.Now(), 0
	for {
		var line struct {
			Path  string
			Patch object
		}
		if err := decoder.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			refuse(w, &failure{400, "BadRequest", err.Error()})
			return
		}
		if rate > 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(float64(count) / rate * float64(time.Second)))))
		}
		asked, known := s.parse(strings.TrimSpace(line.Path))
		if !known {
			refuse(w, &failure{404, "NotFound", line.Path})
			return
		}
		_, failed := s.store.replace(asked.table, asked.namespace+"/"+asked.name, asked.status, func(before object) (object, *failure) {
			delete(metadata(before), "resourceVersion")
			return merge(before, line.Patch).(object), nil
		})
		if failed != nil {
			refuse(w, failed)
			return
		}
		count++
	}
	answer(w, 200, object{"count": count})
}

func (s *server) clear() {
	version := s.store.current()
	for _, t := range s.store.tables {
		t.mutex.Lock()
		t.objects, t.keys, t.stale = map[string]*stored{}, nil, false
		t.dropped += len(t.changes)
		t.changes, t.oldest = nil, version
		t.mutex.Unlock()
	}
	s.store.times.forget()
	s.store.times.reset()
}
