// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ordered tree: a treap.
 *
 * A treap is a search tree by key and a heap by a rank drawn at random when a
 * node is added. Its shape is that of a tree built in random order whatever
 * order the keys came in, so depth is O(log n) expected (below 45 for 10,000
 * nodes with overwhelming probability), and an insertion or removal does two
 * rotations on average. A red-black tree would bound the worst case as well,
 * for three times the code; the keys here are not chosen by an adversary who
 * sees the ranks, so the difference buys nothing.
 *
 * The ranks come from a generator inside the tree: two runs over the same
 * events build the same shape, and cost the same number of instructions.
 */
#include "tree.h"

void dt_tree_init(struct dt_tree *tree)
{
	tree->root = NULL;
	tree->first = NULL;
	tree->seed = 0x9e3779b9u;
	tree->nr = 0;
}

/* xorshift32: period 2^32 - 1, never zero. */
static u32 draw_rank(struct dt_tree *tree)
{
	u32 x = tree->seed;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	tree->seed = x;
	return x;
}

static void replace_child(struct dt_tree *tree, struct dt_node *parent,
			  struct dt_node *old, struct dt_node *new)
{
	if (!parent)
		tree->root = new;
	else if (parent->left == old)
		parent->left = new;
	else
		parent->right = new;
	if (new)
		new->parent = parent;
}

/* Lift a node above its parent, keeping the order of the keys. */
static void rotate_up(struct dt_tree *tree, struct dt_node *node)
{
	struct dt_node *parent = node->parent, *inner;

	replace_child(tree, parent->parent, parent, node);
	if (parent->left == node) {
		inner = node->right;
		node->right = parent;
		parent->left = inner;
	} else {
		inner = node->left;
		node->left = parent;
		parent->right = inner;
	}
	if (inner)
		inner->parent = parent;
	parent->parent = node;
}

void dt_tree_add(struct dt_tree *tree, struct dt_node *node, u64 key)
{
	struct dt_node **link = &tree->root, *parent = NULL;
	bool leftmost = true;

	if (!tree->root) {
		*node = (struct dt_node) { .key = key,
					   .rank = draw_rank(tree) };
		tree->root = node;
		tree->first = node;
		tree->nr = 1;
		return;
	}
	while (*link) {
		parent = *link;
		if (dt_before(key, parent->key)) {
			link = &parent->left;
		} else {
			link = &parent->right;
			leftmost = false;
		}
	}
	node->parent = parent;
	node->left = NULL;
	node->right = NULL;
	node->key = key;
	node->rank = draw_rank(tree);
	*link = node;
	if (leftmost)
		tree->first = node;
	tree->nr++;
	while (node->parent && node->parent->rank < node->rank)
		rotate_up(tree, node);
}

void dt_tree_del(struct dt_tree *tree, struct dt_node *node)
{
	if (tree->nr == 1) {
		tree->root = NULL;
		tree->first = NULL;
		tree->nr = 0;
		return;
	}
	if (tree->first == node)
		tree->first = dt_node_next(node);
	while (node->left && node->right)
		rotate_up(tree, node->left->rank > node->right->rank ?
				node->left : node->right);
	replace_child(tree, node->parent, node,
		      node->left ? node->left : node->right);
	node->parent = NULL;
	node->left = NULL;
	node->right = NULL;
	tree->nr--;
}

void dt_tree_move(struct dt_tree *tree, struct dt_node *node, u64 key)
{
	struct dt_node *next, *prev;

	if (tree->nr == 1) {
		node->key = key;
		return;
	}
	if (key == node->key)
		return;
	if (dt_before(key, node->key)) {
		prev = tree->first == node ? NULL : dt_node_prev(node);
		if (!prev || !dt_before(key, prev->key)) {
			node->key = key;
			return;
		}
	} else {
		next = dt_node_next(node);
		if (!next || dt_before(key, next->key)) {
			node->key = key;
			return;
		}
	}
	dt_tree_del(tree, node);
	dt_tree_add(tree, node, key);
}

struct dt_node *dt_node_next(struct dt_node *node)
{
	if (node->right) {
		node = node->right;
		while (node->left)
			node = node->left;
		return node;
	}
	while (node->parent && node->parent->right == node)
		node = node->parent;
	return node->parent;
}

struct dt_node *dt_node_prev(struct dt_node *node)
{
	if (node->left) {
		node = node->left;
		while (node->right)
			node = node->right;
		return node;
	}
	while (node->parent && node->parent->left == node)
		node = node->parent;
	return node->parent;
}

struct dt_node *dt_tree_at(const struct dt_tree *tree, u64 key)
{
	struct dt_node *node = tree->root, *found = NULL;

	while (node) {
		if (dt_before(node->key, key)) {
			node = node->right;
		} else {
			found = node;
			node = node->left;
		}
	}
	return found;
}
