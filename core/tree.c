// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ordered tree: a treap.
 *
 * A treap is a search tree by key and a heap by a rank drawn at random when a
 * node is added. Its shape is that of a tree built in random order whatever
 * order the keys came in, so depth is O(log n) expected (below 45 for 10,000
 * nodes with overwhelming probability), and an insertion or removal changes the
 * place of two others on average. A red-black tree would bound the worst case as
 * well, for three times the code; the keys here are not chosen by an adversary
 * who sees the ranks, so the difference buys nothing. A pairing heap would do
 * for lines, but one removal from it may take time in proportion to all there
 * are, under a lock.
 *
 * A node goes in by parting what will hang below it, and out by joining it (a
 * zip tree's way), rather than by rotations. One that moves, or comes back, keeps
 * its rank, which has nothing to do with its key.
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
	tree->came = 0;
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

/* Whether a node that came to @key at @came stands before @other. */
static inline bool goes_before_node(u64 key, u32 came,
				    const struct dt_node *other)
{
	s64 ahead = (s64)(key - other->key);

	return ahead < 0 ||
	       (unlikely(!ahead) && (s32)(came - other->came) < 0);
}

/*
 * Put a node, which has its rank, in its place on the way down from @at, below
 * all of a higher rank. What stands there is parted into what goes before it
 * and what goes behind it, and hung below it. Whether it is the first of them.
 */
static inline bool put_in(struct dt_node **link, struct dt_node *parent,
			  struct dt_node *node, u64 key, u32 came)
{
	struct dt_node **low = &node->left, **high = &node->right;
	struct dt_node *low_parent = node, *high_parent = node, *at = *link;
	bool leftmost = true;

	while (at && at->rank >= node->rank) {
		parent = at;
		if (goes_before_node(key, came, at)) {
			link = &at->left;
		} else {
			link = &at->right;
			leftmost = false;
		}
		at = *link;
	}
	*link = node;
	node->parent = parent;
	node->key = key;
	node->came = came;
	while (at) {
		if (goes_before_node(key, came, at)) {
			*high = at;
			at->parent = high_parent;
			high_parent = at;
			high = &at->left;
			at = *high;
		} else {
			*low = at;
			at->parent = low_parent;
			low_parent = at;
			low = &at->right;
			at = *low;
			leftmost = false;
		}
	}
	*low = NULL;
	*high = NULL;
	return leftmost;
}

/* Take a node out: what hangs below it on both sides becomes one, by rank. */
static void take_out(struct dt_tree *tree, struct dt_node *node)
{
	struct dt_node *low = node->left, *high = node->right;
	struct dt_node *parent = node->parent, **link = &tree->root;

	if (parent)
		link = parent->left == node ? &parent->left : &parent->right;
	while (low && high) {
		if (low->rank >= high->rank) {
			*link = low;
			low->parent = parent;
			parent = low;
			link = &low->right;
			low = *link;
		} else {
			*link = high;
			high->parent = parent;
			parent = high;
			link = &high->left;
			high = *link;
		}
	}
	if (!low)
		low = high;
	*link = low;
	if (low)
		low->parent = parent;
}

void dt_tree_add(struct dt_tree *tree, struct dt_node *node, u64 key)
{
	if (!node->rank)
		node->rank = draw_rank(tree);
	if (!tree->nr++) {
		node->parent = NULL;
		node->left = NULL;
		node->right = NULL;
		node->key = key;
		node->came = ++tree->came;
		tree->root = node;
		tree->first = node;
		return;
	}
	if (put_in(&tree->root, NULL, node, key, ++tree->came))
		tree->first = node;
}

void dt_tree_del(struct dt_tree *tree, struct dt_node *node)
{
	if (!--tree->nr) {
		tree->root = NULL;
		tree->first = NULL;
		return;
	}
	if (tree->first == node)
		tree->first = dt_node_next(node);
	take_out(tree, node);
	node->parent = NULL;
	node->left = NULL;
	node->right = NULL;
}

void dt_tree_move_as_of(struct dt_tree *tree, struct dt_node *node, u64 key,
			u32 came)
{
	struct dt_node *next = NULL, *prev = NULL;

	/* It stays where it is if it still stands between its neighbours. */
	if (tree->nr > 1) {
		next = dt_node_next(node);
		if (tree->first != node)
			prev = dt_node_prev(node);
	}
	if ((!next || goes_before_node(key, came, next)) &&
	    (!prev || !goes_before_node(key, came, prev))) {
		node->key = key;
		node->came = came;
		return;
	}
	if (tree->first == node)
		tree->first = next;
	take_out(tree, node);
	if (put_in(&tree->root, NULL, node, key, came))
		tree->first = node;
}

struct dt_node *dt_tree_move_first(struct dt_tree *tree, u64 key, u32 came)
{
	struct dt_node *node = tree->first, *parent = node->parent;
	struct dt_node *right = node->right, *next = parent;

	if (right)
		for (next = right; next->left;)
			next = next->left;
	if (!next || goes_before_node(key, came, next)) {
		node->key = key;
		node->came = came;
		return node;
	}
	/* It has nobody on its left. */
	if (right)
		right->parent = parent;
	if (parent)
		parent->left = right;
	else
		tree->root = right;
	tree->first = next;
	/*
	 * The way down to its place leaves the way to the first of all at the
	 * last one that it goes behind or above.
	 */
	for (parent = next->parent;
	     parent && (parent->rank < node->rank ||
			!goes_before_node(key, came, parent));
	     parent = parent->parent)
		;
	put_in(parent ? &parent->left : &tree->root, parent, node, key, came);
	return next;
}

void dt_tree_move(struct dt_tree *tree, struct dt_node *node, u64 key)
{
	if (key != node->key)
		dt_tree_move_as_of(tree, node, key, ++tree->came);
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
