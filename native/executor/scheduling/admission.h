#ifndef WORKBENCH_EXECUTOR_SCHEDULING_ADMISSION_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_ADMISSION_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
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
    Clock::time_point ended_{Clock::duration::min() / 2};  // The call before; long ago at first.
    bool comes_back_ = false;  // As he did the last time.
    bool has_turn_ = false;    // Within a call.
    bool keeps_ = false;       // A turn, between two calls. Guarded by Turns::mu_.
  };

  explicit Turns(const Settings& settings) : settings_(settings), free_(settings.most) {}

  // Of the process.
  static Turns& Get();

  // A call begins; true: with a turn. It ends with Give in any case.
  bool Take(Client* client);
  void Give(Client* client);

  // Around a wait within a call, which says nothing about how soon the client calls again. A call
  // may end without having resumed.
  void Pause(Client* client);
  bool Resume(Client* client);

  // How often a client asked for a turn, at the begin of a call or in the middle, and how often one
  // was kept from one call to the next.
  int64_t asked() const;
  int64_t kept() const;

 private:
  struct Waiter {
    std::condition_variable called;
    bool has_turn = false;
  };

  bool Enter(Client* client, Clock::time_point now);
  void Leave(Client* client);
  // With the lock held:
  void EndKeeping(Client* client);
  void StopAbsent(Clock::time_point now);
  void Pass();

  const Settings settings_;

  mutable std::mutex mu_;  // Guards all below.
  int64_t asked_ = 0;
  int64_t kept_ = 0;
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

  // Before a wait: others run meanwhile.
  void Pause();
  // Before there is something to run again. Nothing where the turn was not paused.
  void Resume();

 private:
  const bool outermost_;
  bool paused_ = false;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_ADMISSION_H_
