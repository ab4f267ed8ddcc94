// A TCP proxy that hands on what it receives a fixed time later, as a longer way would; of the time of a core
// it takes little, where steps are measured on the same cores.
//
//     delaying_proxy PORT DELAY_US
//
// Listens on a free port of 127.0.0.1, says it on stdout, forwards to PORT, and ends with its stdin. What comes
// back is not delayed.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Piece {
  Clock::time_point due;
  std::string bytes;
};

// One direction of a connection.
struct Way {
  int from;
  int to;
  Clock::duration delay;
  std::deque<Piece> waiting;
  bool ended = false;
};

struct Connection {
  Way there;
  Way back;
};

sockaddr_in Local(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void SendAtOnce(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Takes what has come; false at its end.
bool Receive(Way* way) {
  static char buffer[1 << 20];
  const ssize_t got = read(way->from, buffer, sizeof(buffer));
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  way->waiting.push_back({Clock::now() + way->delay, std::string(buffer, static_cast<size_t>(got))});
  return true;
}

// Hands on what is due; false where nobody takes it.
bool Forward(Way* way, Clock::time_point now) {
  while (!way->waiting.empty() && way->waiting.front().due <= now) {
    const std::string& bytes = way->waiting.front().bytes;
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t taken = send(way->to, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (taken < 0 && errno == EINTR) continue;
      if (taken <= 0) return false;
      sent += static_cast<size_t>(taken);
    }
    way->waiting.pop_front();
  }
  return true;
}

// Hands on what is due, and tells the other side of an end; whether there is more to come.
bool Goes(Way* way, Clock::time_point now) {
  if (!Forward(way, now)) {
    way->ended = true;
    way->waiting.clear();
  }
  if (!way->ended || !way->waiting.empty()) return true;
  shutdown(way->to, SHUT_WR);
  return false;
}

// Whether a connection is over, which is closed then.
bool Over(Connection* connection, Clock::time_point now) {
  const bool there = Goes(&connection->there, now);
  const bool back = Goes(&connection->back, now);
  if (there || back) return false;
  close(connection->there.from);
  close(connection->there.to);
  return true;
}

void Accept(int listening, int port, Clock::duration delay, std::list<Connection>* connections) {
  const int near = accept(listening, nullptr, nullptr);
  if (near < 0) return;
  const int far = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Local(port);
  if (far < 0 || connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (far >= 0) close(far);
    close(near);
    return;
  }
  SendAtOnce(near);
  SendAtOnce(far);
  connections->push_back({{near, far, delay, {}}, {far, near, Clock::duration::zero(), {}}});
}

int Listen() {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Local(0);
  socklen_t size = sizeof(address);
  if (listening < 0) Fail("socket");
  if (bind(listening, reinterpret_cast<const sockaddr*>(&address), size) != 0) Fail("bind");
  if (listen(listening, 64) != 0) Fail("listen");
  if (getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size) != 0) Fail("getsockname");
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return listening;
}

void Serve(int port, Clock::duration delay) {
  const int listening = Listen();
  std::list<Connection> connections;
  while (true) {
    std::vector<pollfd> polled = {{STDIN_FILENO, POLLIN, 0}, {listening, POLLIN, 0}};
    std::vector<Way*> read_by;
    Clock::time_point next = Clock::time_point::max();
    for (Connection& connection : connections) {
      for (Way* way : {&connection.there, &connection.back}) {
        if (!way->waiting.empty()) next = std::min(next, way->waiting.front().due);
        if (way->ended) continue;
        polled.push_back({way->from, POLLIN, 0});
        read_by.push_back(way);
      }
    }
    timespec left{};
    if (next != Clock::time_point::max()) {
      const auto ns = std::max(Clock::duration::zero(), next - Clock::now());
      left.tv_sec = static_cast<time_t>(std::chrono::duration_cast<std::chrono::seconds>(ns).count());
      left.tv_nsec = static_cast<long>((ns % std::chrono::seconds(1)).count());
    }
    const bool waits = next == Clock::time_point::max();
    if (ppoll(polled.data(), polled.size(), waits ? nullptr : &left, nullptr) < 0 && errno != EINTR) Fail("ppoll");
    // Nothing is written there: it ends.
    if (polled[0].revents != 0) return;
    for (size_t i = 0; i < read_by.size(); ++i) {
      if (polled[i + 2].revents != 0 && !Receive(read_by[i])) read_by[i]->ended = true;
    }
    const Clock::time_point now = Clock::now();
    connections.remove_if([&](Connection& each) { return Over(&each, now); });
    if (polled[1].revents != 0) Accept(listening, port, delay, &connections);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: delaying_proxy PORT DELAY_US\n");
    return 2;
  }
  Serve(std::atoi(arguments[1]), std::chrono::microseconds(std::atol(arguments[2])));
  return 0;
}
