#ifndef WORKBENCH_EXECUTOR_TURNS_H_
#define WORKBENCH_EXECUTOR_TURNS_H_

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <vector>

namespace workbench {

// Who may run a step on a thread of his own: a few for each core, the others in the order in
// which they came. Dozens of clients that all run at once would each be stopped in the middle of a
// step, for as long as the operating system gives the others.
//
// To wake a thread costs as much as a short step, and its caches are cold. So a client who calls
// again at once keeps his turn for a while, at whose end he goes to the end of the queue.
//
// A turn is a courtesy, not a lock: whoever waits for longer than his patience goes ahead without
// one, so a step that blocks its thread holds nobody up for ever.
class Turns {
 public:
  using Clock = std::chrono::steady_clock;

  struct Settings {
    int most;
    Clock::duration patience;
    Clock::duration keep;    // A turn lasts for so long, and to the end of its step.
    Clock::duration absent;  // Between two calls; then a kept turn is another one's.
  };

  // A thread that comes again and again.
  class Client {
   public:
    explicit Client(Turns* turns) : turns_(turns) {}
    ~Client() { turns_->Leave(this); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

   private:
    friend class Turns;

    Turns* const turns_;
    Clock::time_point began_;  // The turn.
    Clock::time_point gave_{Clock::duration::min() / 2};  // The call before; long ago at first.
    bool comes_back_ = false;  // As he did the last time.
    bool keeps_ = false;       // A turn, between two calls. Guarded by Turns::mu_.
  };

  explicit Turns(const Settings& settings) : settings_(settings), free_(settings.most) {}

  // Of the process.
  static Turns& Get();

  // True: the client has a turn and gives it back.
  bool Take(Client* client);
  // `leaves`: he will not be back soon.
  void Give(Client* client, bool leaves);

 private:
  struct Waiter {
    std::condition_variable called;
    bool has_turn = false;
  };

  void Leave(Client* client);
  // With the lock held:
  void EndKeeping(Client* client);
  void StopAbsent(Clock::time_point now);
  void Pass();

  const Settings settings_;

  std::mutex mu_;  // Guards all below.
  int free_;       // None where somebody waits.
  std::list<Waiter*> waiting_;
  std::vector<Client*> keeping_;  // The longest first. Never all turns: who runs calls the next.
};

// A thread's turn while it runs a step; nothing where the thread has one already, as in a function
// that is called within the step.
class Turn {
 public:
  Turn();
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Around a wait: others run meanwhile.
  void Pause();
  void Resume();

 private:
  const bool outermost_;
  bool has_turn_ = false;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_TURNS_H_
