#!/bin/bash
# github.com/santhosh-tekuri/jsonschema/v6 v6.0.3, which validates values.schema.json in Helm 3.22.0 and 4.3.2
#
# Situation: two objects in a document, and one of them has a key that `propertyNames` refuses.
# Expected:  the error has the place of the object with the key: /featureGates.
# Seen:      in a part of the validations it has the place of the other object, /nodeSelector, whose keys may be
#            any. The document is the same in every call, so probably the order of a Go map decides. A chart that
#            restricts keys by `propertyNames` may thus send people to a field that is right.
#
# Output seen (200 validations; the numbers differ from run to run):
#     179 /featureGates
#      21 /nodeSelector
#
# Needs Go 1.23 or newer and a module proxy. Exits with 0 if this is still so.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOFLAGS=-mod=mod GOPATH="$folder/go"

cat > go.mod <<'MOD'
module finding

go 1.23

require github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
MOD

cat > main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func parsed(text string) any {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	compiler := jsonschema.NewCompiler()
	schema := parsed(`{"properties": {
		"featureGates": {"propertyNames": {"enum": ["Failover"]}},
		"nodeSelector": {"additionalProperties": {"type": "string"}}
	}}`)
	if err := compiler.AddResource("values.json", schema); err != nil {
		panic(err)
	}
	compiled := compiler.MustCompile("values.json")
	values := parsed(`{"nodeSelector": {"disk": "ssd"}, "featureGates": {"Failovr": true}}`)
	for range 200 {
		var refused *jsonschema.ValidationError
		if !errors.As(compiled.Validate(values), &refused) || len(refused.Causes) != 1 {
			panic("one error is expected")
		}
		fmt.Println("/" + strings.Join(refused.Causes[0].InstanceLocation, "/"))
	}
}
GO

go run . > places.txt
sort places.txt | uniq -c
if ! grep -qx "/nodeSelector" places.txt; then
  echo "every error has its own place now" >&2
  exit 1
fi
