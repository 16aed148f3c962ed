//go:build karmada_117 || karmada_116

package main

import (
	"context"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
)

// MaxAvailableReplicas implements the estimator client's interface.
func (a *Accurate) MaxAvailableReplicas(_ context.Context, clusters []*clusterv1alpha1.Cluster, _ *workv1alpha2.ReplicaRequirements) ([]workv1alpha2.TargetCluster, error) {
	return a.maxAvailableReplicas(clusters)
}
