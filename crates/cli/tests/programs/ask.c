/* Asks a server of this name and port ten times, and prints what it answers to the last question. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	char answer[100];
	ssize_t got = 0;
	if (argc < 3 || getaddrinfo(argv[1], argv[2], &hints, &found))
		return 2;
	int it = socket(found->ai_family, found->ai_socktype, 0);
	if (connect(it, found->ai_addr, found->ai_addrlen))
		return 3;
	for (int number = 0; number < 10; number++) {
		/* By both families of calls. */
		if (number % 2 ? write(it, "what?\n", 6) != 6 : send(it, "what?\n", 6, 0) != 6)
			return 4;
		for (got = 0; !got || answer[got - 1] != '\n';) {
			size_t room = sizeof answer - got;
			ssize_t more = number % 2 ? read(it, answer + got, room) : recv(it, answer + got, room, 0);
			if (more <= 0)
				return 5;
			got += more;
		}
	}
	close(it);
	fwrite(answer, 1, got, stdout);
	return 0;
}
