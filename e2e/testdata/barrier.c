/* Four threads pass a barrier 12 times. Each is the last one twice in a row: long after
 * the others sleep. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 12 };

static pthread_barrier_t barrier;

static void *run(void *me)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (i / 2 % THREADS == (intptr_t)me)
			usleep(50000);
		pthread_barrier_wait(&barrier);
	}
	return 0;
}

int main(void)
{
	pthread_t t[THREADS];
	pthread_barrier_init(&barrier, 0, THREADS);
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], 0);
	return 0;
}
