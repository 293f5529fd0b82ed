/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who owns a file or folder and who may write it: code is run only from what nobody but the user
 * can change. */
#ifndef SCRIMP_CODEGEN_BUILD_TRUST_H
#define SCRIMP_CODEGEN_BUILD_TRUST_H

#include "ir/support/pool.h"

#include <sys/stat.h>

/* NULL, or why a file or folder is not this user's alone ("it belongs to ann", "others may write it
 * (mode 0777)").  A group without other members, as many systems give to each user, is no other. */
const char *trust_own(Pool *pool, const struct stat *st);
/* NULL, or why something of this user's is not safe below path: a folder on the way, links
 * followed, that others may write, or a link that another user (but root) owns.  A folder like
 * /tmp, in which nobody removes another's files, is safe; the last part is not looked at.  Whose
 * the folders are does not matter (in a container, those above a shared folder are often
 * another's): their owner can take away what is below, but not make it trust_own. */
const char *trust_path(Pool *pool, const char *path);

#endif
