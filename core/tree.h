/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An ordered tree of embedded nodes, keyed by a 64-bit number that may wrap.
 *
 * Nodes of equal key stand in the order in which they came to that key. The
 * smallest node is cached, so looking at it costs nothing.
 */
#ifndef DISKTIME_TREE_H
#define DISKTIME_TREE_H

#include "deps.h"

struct dt_node {
	struct dt_node *parent, *left, *right;
	u64 key;
	u32 rank;	/* heap order of the treap; 0: to be drawn */
	u32 came;	/* tree->came when it was given its key */
};

struct dt_tree {
	struct dt_node *root, *first;
	u32 seed;	/* state of the generator that draws the ranks */
	u32 nr;
	u32 came;	/* keys given out; may wrap */
};

dt_internal void dt_tree_init(struct dt_tree *tree);
/* A node that has not been on a tree before has a rank of 0. */
dt_internal void dt_tree_add(struct dt_tree *tree, struct dt_node *node, u64 key);
dt_internal void dt_tree_del(struct dt_tree *tree, struct dt_node *node);
/* Give a node that is on the tree another key; cheap if its place stays. */
dt_internal void dt_tree_move(struct dt_tree *tree, struct dt_node *node, u64 key);
/* The same, as if it had been done when tree->came was @came. */
dt_internal void dt_tree_move_as_of(struct dt_tree *tree, struct dt_node *node,
				    u64 key, u32 came);
/* The same for the first node, where it does not go forward. The first then. */
dt_internal struct dt_node *dt_tree_move_first(struct dt_tree *tree, u64 key,
					       u32 came);
dt_internal struct dt_node *dt_node_next(struct dt_node *node);
dt_internal struct dt_node *dt_node_prev(struct dt_node *node);
/* The first node whose key is not before @key, or NULL. */
dt_internal struct dt_node *dt_tree_at(const struct dt_tree *tree, u64 key);

static inline struct dt_node *dt_tree_first(const struct dt_tree *tree)
{
	return tree->first;
}

#endif /* DISKTIME_TREE_H */
