// Package tools keeps the pins of what the deployment tests build.
package tools

import _ "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
