package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	clusterlister "github.com/karmada-io/karmada/pkg/generated/listers/cluster/v1alpha1"
	worklister "github.com/karmada-io/karmada/pkg/generated/listers/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/scheduler"
	schedulercache "github.com/karmada-io/karmada/pkg/scheduler/cache"
	"github.com/karmada-io/karmada/pkg/scheduler/core"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins"
	frameworkruntime "github.com/karmada-io/karmada/pkg/scheduler/framework/runtime"
	"github.com/karmada-io/karmada/pkg/util"
)

// The loop's own rules are not exported. They are called where they are rather than restated here: an oracle
// that restates the rules would only agree with its author.

//go:linkname doScheduleBinding github.com/karmada-io/karmada/pkg/scheduler.(*Scheduler).doScheduleBinding
func doScheduleBinding(s *scheduler.Scheduler, namespace, name string) error

//go:linkname doScheduleClusterBinding github.com/karmada-io/karmada/pkg/scheduler.(*Scheduler).doScheduleClusterBinding
func doScheduleClusterBinding(s *scheduler.Scheduler, name string) error

//go:linkname placementChanged github.com/karmada-io/karmada/pkg/scheduler.placementChanged
func placementChanged(placement policyv1alpha1.Placement, appliedPlacement, observedAffinity string) bool

// currentCache lets algorithms be kept from scenario to scenario, each of which has a cache of its own: every
// framework that is built starts a goroutine for its metrics that never ends.
type currentCache struct{ schedulercache.Cache }

type assembly struct {
	cache     *currentCache
	algorithm core.ScheduleAlgorithm
	filters   map[string]framework.Framework // one per plugin, to call each for its own result
}

var assemblies = map[string]*assembly{}

func assemble(enabled []string) (*assembly, error) {
	key := fmt.Sprint(hasGroups(), enabled)
	if known, ok := assemblies[key]; ok {
		return known, nil
	}
	registry := plugins.NewInTreeRegistry()
	if slices.Contains(enabled, ownRule{}.Name()) {
		registry[ownRule{}.Name()] = func() (framework.Plugin, error) { return ownRule{}, nil }
	}
	registry = registry.Filter(enabled)
	made := &assembly{cache: &currentCache{}, filters: map[string]framework.Framework{}}
	var err error
	if made.algorithm, err = core.NewGenericScheduler(made.cache, registry); err != nil {
		return nil, err
	}
	for name, factory := range registry {
		if made.filters[name], err = frameworkruntime.NewFramework(frameworkruntime.Registry{name: factory}); err != nil {
			return nil, err
		}
	}
	assemblies[key] = made
	return made, nil
}

// loop is a scheduler around one binding.
type loop struct {
	store         *store
	scheduler     *scheduler.Scheduler
	assembly      *assembly
	cache         schedulercache.Cache
	indexer       cache.Indexer
	clusterScoped cache.Indexer
	initial       *workv1alpha2.ResourceBinding
	pass          *Pass
}

func newLoop(scenario *Scenario, document json.RawMessage) (*loop, error) {
	stored, err := newStore(document)
	if err != nil {
		return nil, err
	}
	made, err := assemble(scenario.Plugins)
	if err != nil {
		return nil, err
	}
	clusters := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, cluster := range scenario.Clusters {
		if err := clusters.Add(cluster); err != nil {
			return nil, err
		}
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	addGroupIndexers(indexers)
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	for _, peer := range scenario.Peers {
		if err := indexer.Add(peer); err != nil {
			return nil, err
		}
	}
	l := &loop{
		store: stored, assembly: made, indexer: indexer, initial: stored.object.DeepCopy(),
		clusterScoped: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
	}
	lister := clusterlister.NewClusterLister(clusters)
	l.cache = newCache(lister, indexer)
	assume(scenario, l.cache)
	l.scheduler = &scheduler.Scheduler{KarmadaClient: &client{store: stored}, Algorithm: l}
	set(l.scheduler, "bindingLister", worklister.NewResourceBindingLister(indexer))
	set(l.scheduler, "clusterBindingLister", worklister.NewClusterResourceBindingLister(l.clusterScoped))
	set(l.scheduler, "clusterLister", lister)
	set(l.scheduler, "schedulerCache", l.cache)
	set(l.scheduler, "eventRecorder", l)
	set(l.scheduler, "enableEmptyWorkloadPropagation", scenario.EmptyWorkloadPropagation)
	return l, nil
}

func set(s *scheduler.Scheduler, field string, value any) {
	target := reflect.ValueOf(s).Elem().FieldByName(field)
	reflect.NewAt(target.Type(), unsafe.Pointer(target.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
}

// turn lets the loop handle the binding once, as if its key had been dequeued.
func (l *loop) turn(pass *Pass) {
	l.pass = pass
	l.assembly.cache.Cache = l.cache
	pass.Rules = l.rules()
	object := &l.store.object
	var err error
	if l.store.clusterScoped() {
		if err = l.clusterScoped.Update(l.store.clusterBinding()); err == nil {
			err = doScheduleClusterBinding(l.scheduler, object.Name)
		}
	} else {
		informed := object.DeepCopy()
		if hasGroups() {
			onBindingUpdate(l.cache, informed)
		}
		if err = l.indexer.Update(informed); err == nil {
			err = doScheduleBinding(l.scheduler, object.Namespace, object.Name)
		}
	}
	if err != nil {
		pass.Error = err.Error()
	}
}

// rules names the reasons to schedule that hold for the stored binding. Which of them the loop acts on is the
// first, and whether it acted is in the pass: the two are compared by the reader.
func (l *loop) rules() []string {
	rules := []string{}
	spec, status := &l.store.object.Spec, &l.store.object.Status
	if spec.Placement == nil || !l.store.object.DeletionTimestamp.IsZero() {
		return rules
	}
	applied := util.GetLabelValue(l.store.object.Annotations, util.PolicyPlacementAnnotation)
	if placementChanged(*spec.Placement, applied, status.SchedulerObservedAffinityName) {
		rules = append(rules, "placementChanged")
	}
	if util.IsBindingReplicasChanged(spec, spec.Placement.ReplicaScheduling) {
		rules = append(rules, "replicasChanged")
	}
	if util.RescheduleRequired(spec.RescheduleTriggeredAt, status.LastScheduledTime) {
		rules = append(rules, "rescheduleTriggered")
	}
	if !spec.IsWorkload() || spec.Placement.ReplicaSchedulingType() == policyv1alpha1.ReplicaSchedulingTypeDuplicated {
		rules = append(rules, "duplicated")
	}
	if l.scheduler.HasTerminatingTargetClusters(spec) {
		rules = append(rules, "terminatingTarget")
	}
	return rules
}

// Schedule implements upstream's algorithm interface: upstream's algorithm, taking notes.
func (l *loop) Schedule(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus, option *core.ScheduleAlgorithmOption) (core.ScheduleResult, error) {
	l.pass.Scheduled = true
	result, err := l.assembly.algorithm.Schedule(ctx, spec, status, option)
	term := Term{Affinity: status.SchedulerObservedAffinityName, Clusters: targets(result.SuggestedClusters), Class: "ok"}
	if err != nil {
		term.Error = err.Error()
		var fit *framework.FitError
		var unschedulable *framework.UnschedulableError
		switch {
		case errors.As(err, &unschedulable):
			term.Class = "unschedulable"
		case errors.As(err, &fit):
			term.Class = "fit"
			term.Rejected = l.rejections(ctx, spec, status)
		default:
			term.Class = "error"
		}
	}
	l.pass.Terms = append(l.pass.Terms, term)
	return result, err
}

// rejections calls every filter plugin alone for every cluster: the order in which upstream calls them, and
// so the one reason that it reports, is random from process to process.
func (l *loop) rejections(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) map[string]map[string]string {
	rejected := map[string]map[string]string{}
	snapshot := l.cache.Snapshot()
	for _, info := range snapshot.GetClusters() {
		cluster := info.Cluster()
		if !cluster.DeletionTimestamp.IsZero() {
			continue
		}
		reasons := map[string]string{}
		for _, name := range sortedKeys(l.assembly.filters) {
			result := l.filter(ctx, l.assembly.filters[name], spec, status, cluster)
			if !result.IsSuccess() {
				reasons[name] = strings.Join(result.Reasons(), ", ")
			}
		}
		rejected[cluster.Name] = reasons
	}
	return rejected
}

// Event implements upstream's event recorder for the events on the binding; those on the resource repeat them.
func (l *loop) Event(object runtime.Object, eventType, reason, message string) {
	switch object.(type) {
	case *workv1alpha2.ResourceBinding, *workv1alpha2.ClusterResourceBinding:
		l.pass.Events = append(l.pass.Events, [3]string{eventType, reason, message})
	}
}

// Eventf implements upstream's event recorder.
func (l *loop) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	l.Event(object, eventType, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements upstream's event recorder.
func (l *loop) AnnotatedEventf(object runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	l.Event(object, eventType, reason, fmt.Sprintf(format, args...))
}

func (l *loop) final() *Final {
	object := &l.store.object
	final := &Final{
		Clusters:         targets(object.Spec.Clusters),
		AppliedPlacement: util.GetLabelValue(object.Annotations, util.PolicyPlacementAnnotation),
		Affinity:         object.Status.SchedulerObservedAffinityName,
		Conditions:       [][4]string{},
		ObservedCurrent:  object.Status.SchedulerObservedGeneration == object.Generation,
		ScheduledNow:     !object.Status.LastScheduledTime.Equal(l.initial.Status.LastScheduledTime),
	}
	for _, condition := range object.Status.Conditions {
		final.Conditions = append(final.Conditions, [4]string{
			condition.Type, string(condition.Status), condition.Reason, condition.Message,
		})
	}
	return final
}
