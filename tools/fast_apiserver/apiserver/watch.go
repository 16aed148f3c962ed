package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
)

// list writes one page. A page after the first shows the objects as they are now, and the version of the first.
func (s *server) list(w http.ResponseWriter, r *http.Request, asked request) {
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	version, after := s.store.current(), ""
	if token := query.Get("continue"); token != "" {
		decoded, err := base64.RawURLEncoding.DecodeString(token)
		first, rest, found := strings.Cut(string(decoded), " ")
		given, wrong := strconv.ParseUint(first, 10, 64)
		if err != nil || !found || wrong != nil {
			refuse(w, &failure{400, "BadRequest", "continue key is not valid"})
			return
		}
		version, after = given, rest
	}
	t := asked.table
	t.mutex.Lock()
	if after == "" {
		version = s.store.current()
	}
	keys := t.sorted()
	begin := sort.Search(len(keys), func(index int) bool { return keys[index] > after })
	var page [][]byte
	next, left := "", 0
	for index := begin; index < len(keys); index++ {
		key := keys[index]
		if asked.namespace != "" && !strings.HasPrefix(key, asked.namespace+"/") {
			continue
		}
		if limit > 0 && len(page) == limit {
			left = len(keys) - index
			break
		}
		page, next = append(page, t.objects[key].raw), key
	}
	t.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%d"`, t.kind, t.apiVersion(), version)
	if left > 0 {
		token := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%d %s", version, next)))
		fmt.Fprintf(w, `,"continue":"%s","remainingItemCount":%d`, token, left)
	}
	w.Write([]byte(`},"items":[`))
	for index, raw := range page {
		if index > 0 {
			w.Write([]byte(","))
		}
		w.Write(raw)
	}
	w.Write([]byte("]}"))
}

// watch sends changes until the client leaves or the time is over; all that are ready with one write.
func (s *server) watch(w http.ResponseWriter, r *http.Request, asked request) {
	query := r.URL.Query()
	if query.Get("sendInitialEvents") == "true" {
		// As a server without this feature; clients list instead.
		refuse(w, &failure{422, "Invalid", "sendInitialEvents is forbidden: it is disabled on this server"})
		return
	}
	t := asked.table
	seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
	if err != nil || seconds <= 0 {
		seconds = 1800
	}
	end := time.After(time.Duration(seconds) * time.Second)
	bookmarks := time.NewTicker(time.Minute)
	defer bookmarks.Stop()
	version, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	if version == 0 {
		version = s.initial(w, asked)
	}
	t.mutex.RLock()
	oldest := t.oldest
	position := t.dropped + sort.Search(len(t.changes), func(index int) bool { return t.changes[index].version > version })
	t.mutex.RUnlock()
	if version < oldest {
		refuse(w, &failure{410, "Expired", fmt.Sprintf("too old resource version: %d (%d)", version, oldest)})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	flusher := w.(http.Flusher)
	flusher.Flush()
	for {
		t.mutex.RLock()
		if position < t.dropped {
			t.mutex.RUnlock()
			return // the client was too slow; it continues with a new watch
		}
		ready := t.changes[position-t.dropped:]
		signal := t.changed
		t.mutex.RUnlock()
		position += len(ready)
		var lines []byte
		for _, each := range ready {
			if asked.namespace == "" || each.namespace == asked.namespace {
				lines = append(lines, each.line...)
			}
			version = each.version
		}
		if len(lines) > 0 {
			if _, err := w.Write(lines); err != nil {
				return
			}
			flusher.Flush()
		}
		select {
		case <-signal:
		case <-bookmarks.C:
			if query.Get("allowWatchBookmarks") == "true" {
				fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"%s","apiVersion":"%s","metadata":{"resourceVersion":"%d"}}}`+"\n",
					t.kind, t.apiVersion(), version)
				flusher.Flush()
			}
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// initial sends all objects as added, and returns their version.
func (s *server) initial(w http.ResponseWriter, asked request) uint64 {
	t := asked.table
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, key := range t.sorted() {
		if asked.namespace == "" || strings.HasPrefix(key, asked.namespace+"/") {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", t.objects[key].raw)
		}
	}
	return s.store.current()
}
