package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	clientset "github.com/karmada-io/karmada/pkg/generated/clientset/versioned"
	workclient "github.com/karmada-io/karmada/pkg/generated/clientset/versioned/typed/work/v1alpha2"
)

// store holds the one binding under test the way an API server does: changed by merge patches, with a
// generation that moves when the specification does.
type store struct {
	object workv1alpha2.ResourceBinding // of either kind: the two differ in scope only
}

func newStore(document []byte) (*store, error) {
	s := &store{}
	return s, json.Unmarshal(document, &s.object)
}

func (s *store) generation() int64 { return s.object.Generation }

func (s *store) clusterScoped() bool {
	return s.object.Kind == workv1alpha2.ResourceKindClusterResourceBinding
}

func (s *store) clusterBinding() *workv1alpha2.ClusterResourceBinding {
	rb := s.object.DeepCopy()
	return &workv1alpha2.ClusterResourceBinding{
		TypeMeta: rb.TypeMeta, ObjectMeta: rb.ObjectMeta, Spec: rb.Spec, Status: rb.Status,
	}
}

// patch applies a merge patch. Decoding one into a Go value does what merging requires, except that elements
// of a list would be merged with those that were there; so lists that the patch replaces are dropped before.
func (s *store) patch(kind types.PatchType, data []byte) error {
	if kind != types.MergePatchType {
		return fmt.Errorf("unexpected patch type %s", kind)
	}
	var replaced struct {
		Spec   struct{ Clusters json.RawMessage }
		Status struct{ Conditions json.RawMessage }
	}
	if err := json.Unmarshal(data, &replaced); err != nil {
		return err
	}
	next := s.object.DeepCopy()
	if replaced.Spec.Clusters != nil {
		next.Spec.Clusters = nil
	}
	if replaced.Status.Conditions != nil {
		next.Status.Conditions = nil
	}
	if err := json.Unmarshal(data, next); err != nil {
		return err
	}
	if !reflect.DeepEqual(next.Spec, s.object.Spec) {
		next.Generation++
	}
	version, _ := strconv.ParseUint(s.object.ResourceVersion, 10, 63) // a scenario may leave it out
	next.ResourceVersion = strconv.FormatUint(version+1, 10)
	s.object = *next
	return nil
}

// client is the part of Karmada's clientset that the scheduling loop writes through. Anything else that it
// might call is a nil pointer, so that a new way of writing would be noticed.
type client struct {
	clientset.Interface
	workclient.WorkV1alpha2Interface
	store *store
}

func (c *client) WorkV1alpha2() workclient.WorkV1alpha2Interface { return c }

func (c *client) ResourceBindings(string) workclient.ResourceBindingInterface {
	return &bindings{store: c.store}
}

func (c *client) ClusterResourceBindings() workclient.ClusterResourceBindingInterface {
	return &clusterBindings{store: c.store}
}

type bindings struct {
	workclient.ResourceBindingInterface
	store *store
}

func (b *bindings) Patch(_ context.Context, _ string, kind types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*workv1alpha2.ResourceBinding, error) {
	if err := b.store.patch(kind, data); err != nil {
		return nil, err
	}
	return b.store.object.DeepCopy(), nil
}

type clusterBindings struct {
	workclient.ClusterResourceBindingInterface
	store *store
}

func (b *clusterBindings) Patch(_ context.Context, _ string, kind types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*workv1alpha2.ClusterResourceBinding, error) {
	if err := b.store.patch(kind, data); err != nil {
		return nil, err
	}
	return b.store.clusterBinding(), nil
}
