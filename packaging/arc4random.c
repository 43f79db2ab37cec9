// SPDX-License-Identifier: Apache-2.0
/* libstdc++ of Debian 12 takes the seeds of std::random_device from arc4random(3), which is in
 * glibc since 2.36. It is the only function that needs one newer than 2.34, of Red Hat
 * Enterprise Linux 9 and Ubuntu 22.04. This is linked into releases in its place. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void)
{
	uint32_t v;
	ssize_t n;

	do
		n = getrandom(&v, sizeof v, 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof v)
		abort();
	return v;
}
