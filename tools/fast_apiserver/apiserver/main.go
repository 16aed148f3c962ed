// Command apiserver answers what a scheduler asks of an API server, from memory, as cheaply as possible.
//
// It has lists in pages, watches, creations, merge patches, updates, deletions, subresources of status, resourceVersions with
// conflicts, generations, and nothing else: no admission, validation, authorization, schema, storage or fairness. It is for
// measurements in which the scheduler is to be the limit, and no test of a scheduler may rely on it.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
)

type server struct {
	store *store
}

func main() {
	address := flag.String("listen", "127.0.0.1:0", "where to listen; the port is printed")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, &server{newStore()}))
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case path == "/readyz" || path == "/livez" || path == "/healthz":
		io.WriteString(w, "ok")
	case path == "/version":
		answer(w, 200, object{"major": "1", "minor": "35", "gitVersion": "v1.35.3"})
	case path == "/api":
		answer(w, 200, object{"kind": "APIVersions", "versions": []string{"v1"}})
	case path == "/apis":
		answer(w, 200, groupList())
	case strings.HasPrefix(path, "/admin/"):
		s.admin(w, r)
	case strings.HasPrefix(path, "/apis/authorization.k8s.io/"):
		s.allow(w, r)
	default:
		s.resource(w, r)
	}
}

// allow answers every question about permissions with yes.
func (s *server) allow(w http.ResponseWriter, r *http.Request) {
	fields, failed := read(r)
	if failed != nil {
		refuse(w, failed)
		return
	}
	fields["status"] = object{"allowed": true}
	answer(w, 201, fields)
}

// A request is the path of a request, taken apart.
type request struct {
	table           *table
	namespace, name string
	status          bool
}

func (s *server) parse(path string) (request, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	length := 3 // apis, group, version
	if parts[0] == "api" {
		length = 2
	}
	if len(parts) <= length {
		return request{}, false
	}
	prefix, rest := "/"+strings.Join(parts[:length], "/"), parts[length:]
	found := request{}
	if len(rest) >= 3 && rest[0] == "namespaces" && s.store.tables[prefix+"/"+rest[2]] != nil {
		found.namespace, rest = rest[1], rest[2:]
	}
	found.table = s.store.tables[prefix+"/"+rest[0]]
	if found.table == nil {
		return request{}, false
	}
	if len(rest) > 1 {
		found.name = rest[1]
	}
	found.status = len(rest) == 3 && rest[2] == "status"
	return found, len(rest) < 3 || found.status
}

func (s *server) resource(w http.ResponseWriter, r *http.Request) {
	asked, known := s.parse(r.URL.Path)
	if !known {
		rows, isGroup := groupVersions()[strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")]
		if !isGroup {
			refuse(w, &failure{404, "NotFound", "the server could not find the requested resource"})
			return
		}
		answer(w, 200, resourceList(rows[0].apiVersion(), rows))
		return
	}
	if query := r.URL.Query(); query.Get("labelSelector") != "" || query.Get("fieldSelector") != "" {
		refuse(w, &failure{400, "BadRequest", "selectors are not supported"})
		return
	}
	key := asked.namespace + "/" + asked.name
	what := r.Method + " " + asked.table.plural
	if asked.status {
		what += "/status"
	}
	var found *stored
	var failed *failure
	code := 200
	switch {
	case r.Method == "GET" && asked.name == "" && r.URL.Query().Get("watch") != "":
		s.store.times.request("WATCH " + asked.table.plural)
		s.watch(w, r, asked)
		return
	case r.Method == "GET" && asked.name == "":
		s.store.times.request("LIST " + asked.table.plural)
		s.list(w, r, asked)
		return
	case r.Method == "GET":
		asked.table.mutex.RLock()
		found = asked.table.objects[key]
		asked.table.mutex.RUnlock()
		if found == nil {
			failed = notFound(asked.table.plural, asked.name)
		}
	case r.Method == "POST":
		code = 201
		var fields object
		if fields, failed = read(r); failed == nil {
			if asked.namespace != "" {
				metadata(fields)["namespace"] = asked.namespace
			}
			found, failed = s.store.create(asked.table, fields)
		}
	case r.Method == "PUT" || r.Method == "PATCH":
		var fields object
		if fields, failed = read(r); failed == nil {
			found, failed = s.store.replace(asked.table, key, asked.status, func(before object) (object, *failure) {
				if r.Method == "PUT" {
					return fields, nil
				}
				delete(metadata(before), "resourceVersion") // only a version that the patch names is compared
				return merge(before, fields).(object), nil
			})
		}
	case r.Method == "DELETE" && asked.name == "":
		s.removeAll(w, asked)
		return
	case r.Method == "DELETE":
		found, failed = s.store.remove(asked.table, key)
	default:
		failed = &failure{405, "MethodNotAllowed", "the server does not allow this method on the requested resource"}
	}
	if failed != nil {
		s.store.times.request(fmt.Sprintf("%s %d", what, failed.code))
		refuse(w, failed)
		return
	}
	s.store.times.request(fmt.Sprintf("%s %d", what, code))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(found.raw)
}

func (s *server) removeAll(w http.ResponseWriter, asked request) {
	asked.table.mutex.Lock()
	keys := append([]string(nil), asked.table.sorted()...)
	asked.table.mutex.Unlock()
	for _, key := range keys {
		if asked.namespace == "" || strings.HasPrefix(key, asked.namespace+"/") {
			s.store.remove(asked.table, key)
		}
	}
	answer(w, 200, object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
}

func read(r *http.Request) (object, *failure) {
	body, err := io.ReadAll(r.Body)
	fields := object{}
	if err == nil && bytes.HasPrefix(body, protobufMagic) {
		fields, err = fromProtobuf(body)
	} else if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		err = decoder.Decode(&fields)
	}
	if err != nil {
		return nil, &failure{400, "BadRequest", err.Error()}
	}
	return fields, nil
}

func answer(w http.ResponseWriter, code int, fields any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(fields)
}

func refuse(w http.ResponseWriter, failed *failure) {
	answer(w, failed.code, object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure",
		"message": failed.message, "reason": failed.reason, "code": failed.code})
}
