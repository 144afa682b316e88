/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An ordered tree of embedded nodes, keyed by a 64-bit number that may wrap.
 *
 * Nodes of equal key keep the order in which they were added. The smallest
 * node is cached, so looking at it costs nothing.
 */
#ifndef DISKTIME_TREE_H
#define DISKTIME_TREE_H

#include "deps.h"

struct dt_node {
	struct dt_node *parent, *left, *right;
	u64 key;
	u32 rank;	/* heap order of the treap, drawn at insertion */
};

struct dt_tree {
	struct dt_node *root, *first;
	u32 seed;	/* state of the generator that draws the ranks */
	u32 nr;
};

dt_internal void dt_tree_init(struct dt_tree *tree);
dt_internal void dt_tree_add(struct dt_tree *tree, struct dt_node *node, u64 key);
dt_internal void dt_tree_del(struct dt_tree *tree, struct dt_node *node);
/* Give a node that is on the tree another key; cheap if its place stays. */
dt_internal void dt_tree_move(struct dt_tree *tree, struct dt_node *node, u64 key);
dt_internal struct dt_node *dt_node_next(struct dt_node *node);
dt_internal struct dt_node *dt_node_prev(struct dt_node *node);
/* The first node whose key is not before @key, or NULL. */
dt_internal struct dt_node *dt_tree_at(const struct dt_tree *tree, u64 key);

static inline struct dt_node *dt_tree_first(const struct dt_tree *tree)
{
	return tree->first;
}

#endif /* DISKTIME_TREE_H */
