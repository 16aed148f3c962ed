//go:build !karmada_116

package main

import (
	"context"

	"k8s.io/client-go/tools/cache"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/features"
	schedulercache "github.com/karmada-io/karmada/pkg/scheduler/cache"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	"github.com/karmada-io/karmada/pkg/util/indexregistry"

	_ "unsafe" // for go:linkname
)

//go:linkname affinityGroupIndex github.com/karmada-io/karmada/pkg/scheduler.resourceBindingAffinityGroupIndexer
func affinityGroupIndex(obj any) ([]string, error)

//go:linkname antiAffinityGroupIndex github.com/karmada-io/karmada/pkg/scheduler.resourceBindingAntiAffinityGroupIndexer
func antiAffinityGroupIndex(obj any) ([]string, error)

func hasGroups() bool { return features.FeatureGate.Enabled(features.WorkloadAffinity) }

func addGroupIndexers(indexers cache.Indexers) {
	if hasGroups() {
		indexers[indexregistry.ResourceBindingIndexByAffinityGroup] = affinityGroupIndex
		indexers[indexregistry.ResourceBindingIndexByAntiAffinityGroup] = antiAffinityGroupIndex
	}
}

func onBindingUpdate(cache schedulercache.Cache, binding *workv1alpha2.ResourceBinding) {
	cache.AssigningResourceBindings().OnBindingUpdate(binding)
}

func (l *loop) filter(ctx context.Context, plugins framework.Framework, spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus, cluster *clusterv1alpha1.Cluster) *framework.Result {
	return plugins.RunFilterPlugins(&framework.FilterContext{
		Context: ctx, BindingSpec: spec, BindingStatus: status, Cluster: cluster,
		ResourceBindingIndexer: l.indexer, AssigningBindings: l.cache.AssigningResourceBindings().GetBindings(),
	})
}
