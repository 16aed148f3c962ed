package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"k8s.io/client-go/tools/cache"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	clusterlister "github.com/karmada-io/karmada/pkg/generated/listers/cluster/v1alpha1"
	"github.com/karmada-io/karmada/pkg/scheduler/core"
)

// Work is one line of input of `oracle cost`: what to decide, and how the fleet moves meanwhile.
//
// A line with clusters starts a new fleet. Decision i is taken on binding i after the clusters of changes i have
// been put into the informer's store, as a watch does it. Decisions end with the seconds; the rest of the changes
// are made all the same, so that the fleet is afterwards what the other side has.
type Work struct {
	Gates    map[string]bool                 `json:"gates"`
	Plugins  []string                        `json:"plugins"`
	Clusters []*clusterv1alpha1.Cluster      `json:"clusters"`
	Bindings []*workv1alpha2.ResourceBinding `json:"bindings"`
	Changes  [][]*clusterv1alpha1.Cluster    `json:"changes"`
	Seconds  float64                         `json:"seconds"`
}

// Cost is one line of output. CPU is user and system time of the whole process (getrusage), so the garbage
// collector's threads are in it.
type Cost struct {
	Error     string     `json:"error,omitempty"`
	Decisions int        `json:"decisions"`
	CPUNanos  int64      `json:"cpuNanos"`
	WallNanos int64      `json:"wallNanos"`
	Results   [][][2]any `json:"results"` // per decision: name, replicas; none where it failed
	Errors    []string   `json:"errors"`  // per decision
}

// fleet is a scheduler's algorithm over its cache, as karmada-scheduler has them.
type fleet struct {
	clusters  cache.Indexer
	algorithm core.ScheduleAlgorithm
}

func newFleet(work *Work) (*fleet, error) {
	if err := setGates(work.Gates); err != nil {
		return nil, err
	}
	made, err := assemble(work.Plugins)
	if err != nil {
		return nil, err
	}
	f := &fleet{clusters: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), algorithm: made.algorithm}
	if err := f.put(work.Clusters); err != nil {
		return nil, err
	}
	bindings := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	made.cache.Cache = newCache(clusterlister.NewClusterLister(f.clusters), bindings)
	return f, nil
}

func (f *fleet) put(clusters []*clusterv1alpha1.Cluster) error {
	for _, cluster := range clusters {
		if err := f.clusters.Update(cluster); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) move(work *Work, index int) error {
	if index < len(work.Changes) {
		return f.put(work.Changes[index])
	}
	return nil
}

// decide takes the decisions one after the other, on the time of the whole process.
func (f *fleet) decide(work *Work) (Cost, error) {
	cost := Cost{Results: [][][2]any{}, Errors: []string{}}
	results := make([]core.ScheduleResult, len(work.Bindings))
	problems := make([]error, len(work.Bindings))
	option := &core.ScheduleAlgorithmOption{}
	limit := time.Duration(work.Seconds * float64(time.Second))
	runtime.GC() // what reading the line has left behind is not the decisions' business
	wall, cpu := time.Now(), cpuTime()
	for i, binding := range work.Bindings {
		if err := f.move(work, i); err != nil {
			return cost, err
		}
		results[i], problems[i] = f.algorithm.Schedule(context.Background(), &binding.Spec, &binding.Status, option)
		cost.Decisions++
		if limit > 0 && time.Since(wall) > limit {
			break
		}
	}
	cost.CPUNanos, cost.WallNanos = (cpuTime() - cpu).Nanoseconds(), time.Since(wall).Nanoseconds()
	for i := range cost.Decisions {
		cost.Results = append(cost.Results, targets(results[i].SuggestedClusters))
		text := ""
		if problems[i] != nil {
			text = problems[i].Error()
		}
		cost.Errors = append(cost.Errors, text)
	}
	for i := cost.Decisions; i < len(work.Bindings); i++ {
		if err := f.move(work, i); err != nil {
			return cost, err
		}
	}
	return cost, nil
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// countCosts answers line by line. Go's garbage collector runs as it does in karmada-scheduler.
func countCosts() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	encoder := json.NewEncoder(os.Stdout)
	var current *fleet
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			var cost Cost
			var problem error
			if current, cost, problem = answerCost(current, line); problem != nil {
				cost.Error = problem.Error()
			}
			if err := encoder.Encode(cost); err != nil {
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

func answerCost(current *fleet, line []byte) (*fleet, Cost, error) {
	var work Work
	if err := json.Unmarshal(line, &work); err != nil {
		return current, Cost{}, err
	}
	if len(work.Clusters) > 0 {
		var err error
		if current, err = newFleet(&work); err != nil {
			return nil, Cost{}, err
		}
	}
	if current == nil {
		return nil, Cost{}, errors.New("the first line has to name clusters")
	}
	cost, err := current.decide(&work)
	return current, cost, err
}
