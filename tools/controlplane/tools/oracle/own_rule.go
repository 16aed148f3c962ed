package main

import (
	"context"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
)

// ownRule is OwnRule of tools/bench/cores.py, compiled in: what a rule of somebody's own costs karmada-scheduler.
type ownRule struct{}

// Name is that of the Python class.
func (ownRule) Name() string { return "OwnRule" }

// Filter refuses the tier 3 to workloads of more than three replicas.
func (ownRule) Filter(_ context.Context, spec *workv1alpha2.ResourceBindingSpec, _ *workv1alpha2.ResourceBindingStatus, cluster *clusterv1alpha1.Cluster) *framework.Result {
	if spec.Replicas > 3 && cluster.Labels["tier"] == "3" {
		return framework.NewResult(framework.Unschedulable, "cluster(s) were for small workloads")
	}
	return framework.NewResult(framework.Success)
}

// Score prefers production.
func (ownRule) Score(_ context.Context, _ *workv1alpha2.ResourceBindingSpec, cluster *clusterv1alpha1.Cluster) (int64, *framework.Result) {
	if cluster.Labels["environment"] == "production" {
		return 10, framework.NewResult(framework.Success)
	}
	return 0, framework.NewResult(framework.Success)
}

// ScoreExtensions is none.
func (ownRule) ScoreExtensions() framework.ScoreExtensions { return nil }
