// SPDX-License-Identifier: GPL-2.0-only
/*
 * The check at load: the running kernel against what this module was built with.
 *
 * disktime uses structures that the kernel does not publish. Their declarations
 * come from a kernel's BTF at build time, and a wrong one is silent: a member
 * too many in elevator_type passes the compiler, MODVERSIONS and insmod, and
 * corrupts memory later. So the module carries a table of every size, offset and
 * shape of type that it was compiled with (disktime-fit.h), and compares it with
 * the BTF of the kernel it is being loaded into before it registers anything.
 *
 * BTF is a list of type records followed by the strings they name. One pass over
 * the records notes where each begins and which of them the table asks for;
 * everything else is then a look-up. Nothing in the data is trusted: each record
 * is checked against the section's end, each type id and string against their
 * counts, and chains are followed for a bounded number of steps.
 */
#define pr_fmt(fmt) "disktime: " fmt

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/utsname.h>
#include <linux/version.h>
#include <uapi/linux/btf.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>	/* 6.12 moved it. */
#endif

#include "compat/compat.h"
#include "compat/fit.h"

#define FIT_BTF_PATH	"/sys/kernel/btf/vmlinux"
/* Stock kernels have 4 to 8 MiB of BTF; a file larger than this is not BTF. */
#define FIT_BTF_MAX	(64u << 20)
/* Debian 6.12 has 113 thousand types. */
#define FIT_RECORD_MIN	12u
/* Longest chain of typedefs and qualifiers, and longest signature (as in genprivate). */
#define FIT_STEPS	64
#define FIT_STACK	64
/* Depth of anonymous structures within each other. */
#define FIT_NESTING	8

/* Zeroes behind the file's bytes, so that four can be read at the last string. */
#define FIT_ROOM	sizeof(u32)

struct fit_member {
	const char *name;
	u32 bit_offset;
	u32 signature;
};

struct fit_type {
	const char *name;
	u32 size;
	u16 first;	/* of its members in fit_members[] */
	u16 nr;
};

struct fit_function {
	const char *name;
	u32 signature;
};

#include "disktime-fit.h"

static bool fit_unread;
module_param(fit_unread, bool, 0444);
MODULE_PARM_DESC(fit_unread,
	"load even where the running kernel's BTF cannot be read (default: no). Where it can be read and differs, never.");

static unsigned int fit_usec;
module_param(fit_usec, uint, 0444);
MODULE_PARM_DESC(fit_usec, "what the check at load took, in microseconds (read only)");

struct fit_btf {
	const void *types;	/* the section of records */
	u32 types_len;
	const char *strings;	/* ends in a NUL */
	u32 strings_len;
	u32 *at;		/* offset in types of record id; id 0 is void */
	u32 nr;			/* ids in use, void included */
	u32 type_id[ARRAY_SIZE(fit_types)];
	u32 function_id[ARRAY_SIZE(fit_functions)];
};

static const struct btf_type *fit_type(const struct fit_btf *btf, u32 id)
{
	return id && id < btf->nr ? btf->types + btf->at[id] : NULL;
}

static const char *fit_string(const struct fit_btf *btf, u32 offset)
{
	return offset < btf->strings_len ? btf->strings + offset : "\0\0\0";
}

static u32 fit_kind(const struct btf_type *type)
{
	return type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN;
}

/* Bytes of a record past its common part, or -1 for a kind not known here. */
static int fit_tail(const struct btf_type *type)
{
	u32 vlen = BTF_INFO_VLEN(type->info);

	switch (fit_kind(type)) {
	case BTF_KIND_INT:
		return sizeof(u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return vlen * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return vlen * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return vlen * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return vlen * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return vlen * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(struct btf_decl_tag);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	default:
		return -1;
	}
}

/* Follows typedefs and qualifiers to the type they stand for. */
static u32 fit_resolve(const struct fit_btf *btf, u32 id)
{
	const struct btf_type *type;
	int step;

	for (step = 0; step < FIT_STEPS; step++) {
		type = fit_type(btf, id);
		switch (fit_kind(type)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			id = type->type;
			break;
		default:
			return id;
		}
	}
	return 0;
}

static u32 fit_hash(u32 hash, const void *bytes, size_t len)
{
	const u8 *byte = bytes;

	while (len--)
		hash = (hash ^ *byte++) * 0x01000193;
	return hash;
}

static u32 fit_hash_tagged(u32 hash, char tag, u32 value, size_t len)
{
	hash = fit_hash(hash, &tag, 1);
	return fit_hash(hash, &value, len);
}

/*
 * A hash of a type's shape, the same as genprivate's signature(): pointers and
 * prototypes are followed, structures and unions stand by their names.
 */
static u32 fit_signature(const struct fit_btf *btf, u32 id)
{
	u32 stack[FIT_STACK], hash = 0x811c9dc5;
	const struct btf_type *type;
	const struct btf_param *param;
	const struct btf_array *array;
	const char *name;
	int top = 0, step, i;
	u32 vlen;

	stack[top++] = id;
	for (step = 0; top && step < FIT_STEPS; step++) {
		id = fit_resolve(btf, stack[--top]);
		type = fit_type(btf, id);
		switch (fit_kind(type)) {
		case BTF_KIND_UNKN:
			hash = fit_hash(hash, "v", 1);
			break;
		case BTF_KIND_INT:
			if (BTF_INT_ENCODING(*(const u32 *)(type + 1)) & BTF_INT_BOOL) {
				hash = fit_hash(hash, "b", 1);
				break;
			}
			fallthrough;
		case BTF_KIND_ENUM:
		case BTF_KIND_ENUM64:
			hash = fit_hash_tagged(hash, 'i', type->size, 1);
			break;
		case BTF_KIND_PTR:
			hash = fit_hash(hash, "p", 1);
			stack[top++] = type->type;
			break;
		case BTF_KIND_ARRAY:
			array = (const struct btf_array *)(type + 1);
			hash = fit_hash_tagged(hash, 'a', array->nelems, sizeof(u32));
			stack[top++] = array->type;
			break;
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION:
		case BTF_KIND_FWD:
			name = fit_string(btf, type->name_off);
			hash = fit_hash(hash, "s", 1);
			hash = fit_hash(hash, name, strlen(name) + 1);
			break;
		case BTF_KIND_FUNC_PROTO:
			vlen = BTF_INFO_VLEN(type->info);
			if (top + vlen + 1 > FIT_STACK)
				return 0;
			hash = fit_hash_tagged(hash, 'f', vlen, 1);
			param = (const struct btf_param *)(type + 1);
			for (i = vlen - 1; i >= 0; i--)
				stack[top++] = param[i].type;
			stack[top++] = type->type;
			break;
		default:
			hash = fit_hash(hash, "?", 1);
			break;
		}
	}
	return hash;
}

/*
 * Finds a member by name, through anonymous structures and unions, and says
 * where it lies from the beginning of the whole.
 */
static bool fit_find_member(const struct fit_btf *btf, u32 id, const char *name,
			    u32 *bit_offset, u32 *type_id)
{
	struct { u32 id, base; } stack[FIT_NESTING];
	const struct btf_member *member;
	const struct btf_type *type;
	u32 base, offset, i;
	int top = 0, step;

	stack[top].id = id;
	stack[top++].base = 0;
	for (step = 0; top && step < FIT_STEPS; step++) {
		base = stack[--top].base;
		type = fit_type(btf, stack[top].id);
		if (fit_kind(type) != BTF_KIND_STRUCT && fit_kind(type) != BTF_KIND_UNION)
			continue;
		member = (const struct btf_member *)(type + 1);
		for (i = 0; i < BTF_INFO_VLEN(type->info); i++, member++) {
			offset = base + (BTF_INFO_KFLAG(type->info) ?
				BTF_MEMBER_BIT_OFFSET(member->offset) : member->offset);
			if (!member->name_off && top < FIT_NESTING) {
				stack[top].id = fit_resolve(btf, member->type);
				stack[top++].base = offset;
			} else if (!strcmp(fit_string(btf, member->name_off), name)) {
				*bit_offset = offset;
				*type_id = member->type;
				return true;
			}
		}
	}
	return false;
}

/* Notes a record that the table asks for. */
static void fit_note(struct fit_btf *btf, const struct btf_type *type, u32 id)
{
	const char *name = fit_string(btf, type->name_off);
	int i;

	if (fit_kind(type) == BTF_KIND_FUNC) {
		for (i = 0; i < ARRAY_SIZE(fit_functions); i++)
			if (!btf->function_id[i] && !strcmp(name, fit_functions[i].name))
				btf->function_id[i] = id;
	} else {
		for (i = 0; i < ARRAY_SIZE(fit_types); i++)
			if (!btf->type_id[i] && !strcmp(name, fit_types[i].name))
				btf->type_id[i] = id;
	}
}

/*
 * A hash of a name's first four bytes, the NUL included. There are always four
 * to read: fit_read() leaves room behind the strings.
 */
static u32 fit_prefix_bit(const char *name)
{
	return get_unaligned((const u32 *)name) * 0x9e3779b1u >> 24;
}

/*
 * The pass over all records. Few names begin with the same four bytes as a
 * wanted one, so that a bitmap of those spares nearly all comparisons.
 */
static int fit_index(struct fit_btf *btf)
{
	DECLARE_BITMAP(wanted, 256) = { };
	const struct btf_type *type;
	u32 at = 0, kind, i;
	int tail;

	/* No wanted name is shorter than three bytes and a NUL ("bio"). */
	for (i = 0; i < ARRAY_SIZE(fit_types); i++)
		__set_bit(fit_prefix_bit(fit_types[i].name), wanted);
	for (i = 0; i < ARRAY_SIZE(fit_functions); i++)
		__set_bit(fit_prefix_bit(fit_functions[i].name), wanted);

	btf->nr = 1;
	while (at < btf->types_len) {
		if (btf->types_len - at < sizeof(*type))
			return -EINVAL;
		type = btf->types + at;
		tail = fit_tail(type);
		if (tail < 0 || tail > btf->types_len - at - sizeof(*type))
			return -EINVAL;
		kind = fit_kind(type);
		if ((kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_FUNC) &&
		    test_bit(fit_prefix_bit(fit_string(btf, type->name_off)), wanted))
			fit_note(btf, type, btf->nr);
		btf->at[btf->nr++] = at;
		at += sizeof(*type) + tail;
		if (!(btf->nr % 4096))
			cond_resched();
	}
	return 0;
}

#define FIT_ADVICE "build disktime for this kernel (dkms does, or make against its headers)"

static int fit_refuse(const char *what)
{
	pr_err("%s differs between the running kernel %s and the one this module was built for, %s: "
	       FIT_ADVICE "\n", what, init_utsname()->release, DISKTIME_FIT_RELEASE);
	return -ENOEXEC;
}

static int fit_compare_type(const struct fit_btf *btf, const struct fit_type *want, u32 id)
{
	const struct fit_member *member = fit_members + want->first;
	const struct btf_type *type = fit_type(btf, id);
	u32 offset, member_type;
	char what[96];
	int i;

	if (!type) {
		snprintf(what, sizeof(what), "struct %s (gone here)", want->name);
		return fit_refuse(what);
	}
	for (i = 0; i < want->nr; i++, member++) {
		if (!fit_find_member(btf, id, member->name, &offset, &member_type)) {
			snprintf(what, sizeof(what), "struct %s member %s (gone here)",
				 want->name, member->name);
			return fit_refuse(what);
		}
		if (offset != member->bit_offset) {
			snprintf(what, sizeof(what), "struct %s member %s (at byte %u here, %u there)",
				 want->name, member->name, offset / 8, member->bit_offset / 8);
			return fit_refuse(what);
		}
		if (fit_signature(btf, member_type) != member->signature) {
			snprintf(what, sizeof(what), "struct %s member %s (another type here)",
				 want->name, member->name);
			return fit_refuse(what);
		}
	}
	if (type->size != want->size) {
		snprintf(what, sizeof(what), "struct %s (%u bytes here, %u there)",
			 want->name, type->size, want->size);
		return fit_refuse(what);
	}
	return 0;
}

static int fit_compare(const struct fit_btf *btf)
{
	const struct btf_type *type;
	char what[96];
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(fit_types); i++) {
		ret = fit_compare_type(btf, &fit_types[i], btf->type_id[i]);
		if (ret)
			return ret;
	}
	for (i = 0; i < ARRAY_SIZE(fit_functions); i++) {
		type = fit_type(btf, btf->function_id[i]);
		if (type && fit_signature(btf, type->type) == fit_functions[i].signature)
			continue;
		snprintf(what, sizeof(what), "%s() (%s here)", fit_functions[i].name,
			 type ? "another prototype" : "gone");
		return fit_refuse(what);
	}
	return 0;
}

/* Checks the header and sets up the sections; the blob ends in a NUL of ours. */
static int fit_open(struct fit_btf *btf, const void *blob, u32 len)
{
	const struct btf_header *header = blob;
	u32 body;

	if (len < sizeof(*header) || header->magic != BTF_MAGIC ||
	    header->version != BTF_VERSION || header->hdr_len < sizeof(*header) ||
	    header->hdr_len > len)
		return -EINVAL;
	body = len - header->hdr_len;
	if (header->type_off > body || header->type_len > body - header->type_off ||
	    header->str_off > body || header->str_len > body - header->str_off ||
	    header->type_off % sizeof(u32) || !header->str_len)
		return -EINVAL;
	btf->types = blob + header->hdr_len + header->type_off;
	btf->types_len = header->type_len;
	btf->strings = blob + header->hdr_len + header->str_off;
	btf->strings_len = header->str_len;
	if (btf->strings[btf->strings_len - 1])
		return -EINVAL;
	btf->at = kvmalloc_array(btf->types_len / FIT_RECORD_MIN + 1, sizeof(*btf->at), GFP_KERNEL);
	return btf->at ? 0 : -ENOMEM;
}

static void *fit_read(u32 *len)
{
	struct file *file = filp_open(FIT_BTF_PATH, O_RDONLY, 0);
	loff_t size, pos = 0;
	void *blob = NULL;
	ssize_t got;

	if (IS_ERR(file))
		return file;
	size = i_size_read(file_inode(file));
	if (size <= 0 || size > FIT_BTF_MAX) {
		blob = ERR_PTR(-EFBIG);
		goto close_file;
	}
	blob = kvmalloc(size + FIT_ROOM, GFP_KERNEL);
	if (!blob) {
		blob = ERR_PTR(-ENOMEM);
		goto close_file;
	}
	while (pos < size) {
		got = kernel_read(file, blob + pos, size - pos, &pos);
		if (got <= 0) {
			kvfree(blob);
			blob = ERR_PTR(got ? got : -EIO);
			goto close_file;
		}
	}
	memset(blob + size, 0, FIT_ROOM);
	*len = size;
close_file:
	filp_close(file, NULL);
	return blob;
}

int disktime_compat_check_fit(void)
{
	ktime_t begin = ktime_get();
	struct fit_btf *btf;
	void *blob;
	u32 len = 0;
	int ret;

	blob = fit_read(&len);
	if (IS_ERR(blob)) {
		if (fit_unread) {
			pr_warn("%s cannot be read (error %ld): loading without the check of this kernel, as fit_unread=1 asks\n",
				FIT_BTF_PATH, PTR_ERR(blob));
			return 0;
		}
		pr_err("%s cannot be read (error %ld), so it is not known whether this kernel fits: mount sysfs on /sys, or load with fit_unread=1\n",
		       FIT_BTF_PATH, PTR_ERR(blob));
		return -ENOEXEC;
	}
	ret = -ENOMEM;
	btf = kzalloc(sizeof(*btf), GFP_KERNEL);
	if (!btf)
		goto free_blob;
	ret = fit_open(btf, blob, len);
	if (!ret)
		ret = fit_index(btf);
	if (ret == -EINVAL) {
		pr_err("the BTF of kernel %s is of a form not known here: this version of disktime is older than that kernel\n",
		       init_utsname()->release);
		ret = -ENOEXEC;
	} else if (!ret) {
		ret = fit_compare(btf);
	}
	kvfree(btf->at);
	kfree(btf);
free_blob:
	kvfree(blob);
	fit_usec = ktime_us_delta(ktime_get(), begin);
	return ret;
}
