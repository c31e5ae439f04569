/* Makes so many processes, each of which waits for its parent, for a second; prints how many it could. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
	int made = 0;
	for (int tick = 0; tick < 100; tick++) {
		while (made < atoi(argv[argc - 1])) {
			pid_t child = fork();
			if (child < 0)
				break;
			if (child == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				pause();
				_exit(0);
			}
			made++;
		}
		usleep(10000);
	}
	printf("%d\n", made);
	return 0;
}
