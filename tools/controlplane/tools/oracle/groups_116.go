//go:build karmada_116

package main

import (
	"context"

	"k8s.io/client-go/tools/cache"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	schedulercache "github.com/karmada-io/karmada/pkg/scheduler/cache"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
)

// hasGroups returns false: this version knows no groups of workloads.
func hasGroups() bool { return false }

func addGroupIndexers(cache.Indexers) {}

func onBindingUpdate(schedulercache.Cache, *workv1alpha2.ResourceBinding) {}

func (l *loop) filter(ctx context.Context, plugins framework.Framework, spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus, cluster *clusterv1alpha1.Cluster) *framework.Result {
	return plugins.RunFilterPlugins(ctx, spec, status, cluster)
}
