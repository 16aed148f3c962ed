// Command oracle answers "what does karmada-scheduler do with this?" without a control plane.
//
// The version of karmada-scheduler is that of go.mod. What differs in the API of older versions is in files with
// their build tags, karmada_117 and karmada_116.
//
// It reads one scenario per line on stdin (clusters, bindings and the settings that change decisions, as JSON)
// and writes one line per scenario: for every binding what the unmodified scheduling loop did in each pass until
// nothing changed any more. Decisions, conditions, events and the rules on whether to schedule at all are
// upstream's compiled code; only the API server around it is ours (apiserver.go).
//
// `oracle cost` measures the cost of decisions (cost.go).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sort"

	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	estimatorclient "github.com/karmada-io/karmada/pkg/estimator/client"
	"github.com/karmada-io/karmada/pkg/features"
)

// Scenario is one line of input.
type Scenario struct {
	ID                       json.RawMessage                 `json:"id,omitempty"`
	Gates                    map[string]bool                 `json:"gates"`
	Plugins                  []string                        `json:"plugins"`
	EmptyWorkloadPropagation bool                            `json:"emptyWorkloadPropagation"`
	Clusters                 []*clusterv1alpha1.Cluster      `json:"clusters"`
	Peers                    []*workv1alpha2.ResourceBinding `json:"peers"`     // bindings in the informer's cache
	Assigning                []*workv1alpha2.ResourceBinding `json:"assigning"` // bindings just patched by the scheduler
	Assumed                  []Assumption                    `json:"assumed"`
	Accurate                 *Accurate                       `json:"accurate"`
	Bindings                 []json.RawMessage               `json:"bindings"` // decided independently of each other
	MaxPasses                int                             `json:"maxPasses"`
}

// Assumption is the footprint of a workload on its way to a cluster.
type Assumption struct {
	Binding    string                   `json:"binding"`
	Cluster    string                   `json:"cluster"`
	Namespace  string                   `json:"namespace"`
	Components []workv1alpha2.Component `json:"components"`
}

// Accurate replaces the per-cluster estimators: their answers, or an error for all.
type Accurate struct {
	Replicas map[string]int32 `json:"replicas"`
	Error    string           `json:"error"`
}

// Answer is one line of output.
type Answer struct {
	ID       json.RawMessage `json:"id,omitempty"`
	Error    string          `json:"error,omitempty"`
	Bindings []Result        `json:"bindings,omitempty"`
}

// Result is what happened to one binding.
type Result struct {
	Passes  []Pass `json:"passes,omitempty"`
	Final   *Final `json:"final,omitempty"`
	Settled bool   `json:"settled"`
	Panic   string `json:"panic,omitempty"`
}

// Pass is one turn of the scheduling loop.
type Pass struct {
	Rules     []string    `json:"rules"`     // reasons to schedule that hold, in the order of upstream's checks
	Scheduled bool        `json:"scheduled"` // whether the algorithm ran
	Terms     []Term      `json:"terms,omitempty"`
	Events    [][3]string `json:"events,omitempty"` // of the binding: type, reason, message
	Error     string      `json:"error,omitempty"`  // what makes the loop try again later
}

// Term is one run of the algorithm: one affinity term, or the only one.
type Term struct {
	Affinity string                       `json:"affinity"`
	Clusters [][2]any                     `json:"clusters"` // name, replicas; in upstream's order
	Error    string                       `json:"error,omitempty"`
	Class    string                       `json:"class"`              // ok | fit | unschedulable | error
	Rejected map[string]map[string]string `json:"rejected,omitempty"` // fit only: cluster, plugin, reason
}

// Final is the binding once the loop came to rest.
type Final struct {
	Clusters         [][2]any    `json:"clusters"`
	AppliedPlacement string      `json:"appliedPlacement"`
	Affinity         string      `json:"affinity"`
	Conditions       [][4]string `json:"conditions"` // type, status, reason, message
	ObservedCurrent  bool        `json:"observedCurrent"`
	ScheduledNow     bool        `json:"scheduledNow"`
}

func (a *Accurate) answer(names []string) ([]int32, error) {
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	out := make([]int32, 0, len(names))
	for _, name := range names {
		replicas, ok := a.Replicas[name]
		if !ok {
			return nil, fmt.Errorf("cluster %s does not exist in estimator cache", name)
		}
		out = append(out, replicas)
	}
	return out, nil
}

func (a *Accurate) maxAvailableReplicas(clusters []*clusterv1alpha1.Cluster) ([]workv1alpha2.TargetCluster, error) {
	names := clusterNames(clusters)
	replicas, err := a.answer(names)
	if err != nil {
		return nil, err
	}
	out := make([]workv1alpha2.TargetCluster, 0, len(names))
	for i, name := range names {
		out = append(out, workv1alpha2.TargetCluster{Name: name, Replicas: replicas[i]})
	}
	return out, nil
}

// MaxAvailableComponentSets implements the estimator client's interface.
func (a *Accurate) MaxAvailableComponentSets(_ context.Context, req estimatorclient.ComponentSetEstimationRequest) ([]estimatorclient.ComponentSetEstimationResponse, error) {
	names := clusterNames(req.Clusters)
	sets, err := a.answer(names)
	if err != nil {
		return nil, err
	}
	out := make([]estimatorclient.ComponentSetEstimationResponse, 0, len(names))
	for i, name := range names {
		out = append(out, estimatorclient.ComponentSetEstimationResponse{Name: name, Sets: sets[i]})
	}
	return out, nil
}

func clusterNames(clusters []*clusterv1alpha1.Cluster) []string {
	names := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		names = append(names, cluster.Name)
	}
	return names
}

func decideScenario(line []byte) Answer {
	var scenario Scenario
	if err := json.Unmarshal(line, &scenario); err != nil {
		return Answer{Error: "cannot read the scenario: " + err.Error()}
	}
	answer := Answer{ID: scenario.ID}
	if err := setGates(scenario.Gates); err != nil {
		answer.Error = err.Error()
		return answer
	}
	estimators := estimatorclient.GetReplicaEstimators()
	delete(estimators, "scheduler-estimator")
	if scenario.Accurate != nil {
		estimators["scheduler-estimator"] = scenario.Accurate
	}
	for _, raw := range scenario.Bindings {
		answer.Bindings = append(answer.Bindings, decideBinding(&scenario, raw))
	}
	return answer
}

// setGates leaves out the gates that this version does not know, if they are off.
func setGates(gates map[string]bool) error {
	known := features.FeatureGate.GetAll()
	wanted := map[string]bool{}
	for name, value := range gates {
		if _, ok := known[featuregate.Feature(name)]; ok || value {
			wanted[name] = value
		}
	}
	return features.FeatureGate.SetFromMap(wanted)
}

func decideBinding(scenario *Scenario, raw json.RawMessage) (result Result) {
	defer func() {
		if r := recover(); r != nil {
			result.Panic = fmt.Sprint(r)
		}
	}()
	loop, err := newLoop(scenario, raw)
	if err != nil {
		panic(err)
	}
	passes := scenario.MaxPasses
	if passes == 0 {
		passes = 8
	}
	for range passes {
		before := loop.store.generation()
		pass := Pass{}
		result.Passes = append(result.Passes, pass)
		last := &result.Passes[len(result.Passes)-1]
		loop.turn(last)
		// The loop is enqueued by its own write, and only by one that changes the generation.
		if last.Error != "" || loop.store.generation() == before {
			result.Settled = true
			break
		}
	}
	result.Final = loop.final()
	return result
}

func targets(clusters []workv1alpha2.TargetCluster) [][2]any {
	out := make([][2]any, 0, len(clusters))
	for _, c := range clusters {
		out = append(out, [2]any{c.Name, c.Replicas})
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func silence() {
	set := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(set)
	for name, value := range map[string]string{
		"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL", "skip_headers": "true",
	} {
		if err := set.Set(name, value); err != nil {
			panic(err)
		}
	}
	klog.SetOutput(io.Discard)
}

func main() {
	silence()
	if len(os.Args) == 2 && os.Args[1] == "cost" {
		countCosts()
		return
	}
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "usage: "+os.Args[0]+" [cost] < scenarios.jsonl > answers.jsonl")
		os.Exit(2)
	}
	debug.SetGCPercent(400) // a scenario is small and short-lived; memory is cheaper than time here
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(decideScenario(line)); err != nil {
				panic(err)
			}
			if err := out.Flush(); err != nil {
				panic(err)
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(err)
		}
	}
}
