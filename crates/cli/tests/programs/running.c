// Makes calls of many kinds in as many threads, and ends with 3 and "BROKEN" as soon as one returns
// what it would not return if nothing had happened to its process: the tests attach to it meanwhile.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int stop;
static int there[2], back[2], stream[2];

static void broken(const char *what, long value) {
  fprintf(stderr, "BROKEN %s: %ld, errno %d\n", what, value, errno);
  _exit(3);
}

static void block_signals(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static uint64_t work(uint64_t seed) {
  double sum = 1.5;
  for (int i = 0; i < 200000; i++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    sum = sum * 1.0000001 + (seed & 1);
  }
  uint64_t bits;
  memcpy(&bits, &sum, 8);
  return seed ^ bits;
}

static void *compute(void *with_signals) {
  if (!with_signals) block_signals();
  uint64_t first = work(7);
  while (!stop) {
    if (work(*(volatile uint64_t *)&(uint64_t){7}) != first) broken("arithmetic", 0);
  }
  return NULL;
}

static void *ping(void *unused) {
  block_signals();
  long value = 0;
  for (long i = 0; !stop; i++) {
    value = i;
    if (write(there[1], &value, 8) != 8 || read(back[0], &value, 8) != 8) broken("pipe", i);
    if (value != i + 1) broken("sequence", value);
  }
  value = -1;
  write(there[1], &value, 8);
  return unused;
}

static void *pong(void *unused) {
  block_signals();
  for (long value;;) {
    if (read(there[0], &value, 8) != 8) broken("pipe", 0);
    if (value++ < 0) return unused;
    if (write(back[1], &value, 8) != 8) broken("pipe", value);
  }
}

static void *wait_for_events(void *unused) {
  block_signals();
  int set = epoll_create1(0), pair[2];
  struct epoll_event event = {.events = EPOLLIN};
  sigset_t all;
  sigfillset(&all);
  pipe(pair);
  epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event);
  while (!stop) {
    int found = epoll_wait(set, &event, 1, 20);
    if (found != 0) broken("epoll_wait", found);
    found = epoll_pwait(set, &event, 1, 20, &all);
    if (found != 0) broken("epoll_pwait", found);
  }
  return unused;
}

static void *wait_for_datagrams(void *unused) {
  block_signals();
  int udp = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct timeval most = {0, 20000};
  char byte;
  bind(udp, (void *)&own, sizeof own);
  setsockopt(udp, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  while (!stop) {
    int got = recv(udp, &byte, 1, 0);
    if (got != -1 || errno != EAGAIN) broken("recv with a timeout", got);
  }
  return unused;
}

static void *wait_for_signals(void *unused) {
  block_signals();
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  struct timespec most = {0, 20000000};
  while (!stop) {
    int got = sigtimedwait(&one, NULL, &most);
    if (got != -1 || errno != EAGAIN) broken("sigtimedwait", got);
  }
  return unused;
}

static void *sleep_exactly(void *unused) {
  block_signals();
  struct timespec span = {0, 10000000}, from, to;
  while (!stop) {
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL)) broken("clock_nanosleep", 0);
    clock_gettime(CLOCK_MONOTONIC, &to);
    long slept = (to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec;
    if (slept < 10000000) broken("a sleep was short", slept);
    if (poll(NULL, 0, 10) != 0 || ppoll(NULL, 0, &span, NULL) != 0) broken("poll", 0);
  }
  return unused;
}

static void *start_programs(void *unused) {
  block_signals();
  while (!stop) {
    int status;
    pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", NULL);
      _exit(9);
    }
    if (waitpid(child, &status, 0) != child || status) broken("a child", status);
  }
  return unused;
}

static void *send_stream(void *unused) {
  block_signals();
  char bytes[3000];
  for (unsigned i = 0; !stop; i++) {
    memset(bytes, i, sizeof bytes);
    for (size_t done = 0; done < sizeof bytes;) {
      ssize_t sent = send(stream[0], bytes + done, sizeof bytes - done, 0);
      if (sent <= 0) broken("send", sent);
      done += sent;
    }
  }
  shutdown(stream[0], SHUT_WR);
  return unused;
}

static void *receive_stream(void *unused) {
  block_signals();
  char bytes[4096];
  for (unsigned long at = 0;;) {
    ssize_t got = recv(stream[1], bytes, sizeof bytes, 0);
    if (got < 0) broken("recv", got);
    if (got == 0) return unused;
    for (ssize_t i = 0; i < got; i++, at++) {
      if (bytes[i] != (char)(at / 3000)) broken("data", at);
    }
  }
}

static void count(int number) { (void)number; }

int main(int argc, char **argv) {
  struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof own;
  void *(*bodies[])(void *) = {
      compute,          ping,          pong,           wait_for_events, wait_for_datagrams,
      wait_for_signals, sleep_exactly, start_programs, send_stream,     receive_stream,
  };
  enum { COUNT = sizeof bodies / sizeof *bodies };
  pthread_t threads[COUNT + 1];
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  (void)argc;
  pipe(there), pipe(back);
  bind(listener, (void *)&own, length);
  listen(listener, 1);
  getsockname(listener, (void *)&own, &length);
  stream[0] = socket(AF_INET, SOCK_STREAM, 0);
  connect(stream[0], (void *)&own, length);
  stream[1] = accept(listener, NULL, NULL);
  sigaction(SIGALRM, &action, NULL);
  for (int i = 0; i < COUNT; i++) pthread_create(&threads[i], NULL, bodies[i], NULL);
  // This one gets the signals.
  pthread_create(&threads[COUNT], NULL, compute, "with signals");
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  printf("ready\n");
  fflush(stdout);
  while (access(argv[1], F_OK) != 0) usleep(10000);
  stop = 1;
  setitimer(ITIMER_REAL, &never, NULL);
  for (int i = 0; i <= COUNT; i++) pthread_join(threads[i], NULL);
  printf("fine\n");
}
