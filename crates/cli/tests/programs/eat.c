/* Takes so many megabytes, four at a time with a rest of so many microseconds between, and uses them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
	int rest_us = argc > 2 ? atoi(argv[2]) : 0;
	for (int step = atoi(argv[1]) / 4; step > 0; step--) {
		char *more = malloc(4 << 20);
		if (!more)
			return 3;
		memset(more, 'x', 4 << 20);
		usleep(rest_us);
	}
	puts("ate");
	return 0;
}
