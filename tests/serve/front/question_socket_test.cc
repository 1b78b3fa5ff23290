// The socket at which `laneway top` and `why` ask a front: with clients as they should not be.
#include "serve/front/question_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "serve/loop/poll_loop.h"

namespace serve::front {
namespace {

class QuestionSocketTest : public ::testing::Test {
 protected:
  QuestionSocketTest() {
    char pattern[] = "/tmp/laneway-question-XXXXXX";
    directory_ = mkdtemp(pattern);
    path_ = directory_ + "/serve-1.sock";
    questions_ = *QuestionSocket::Open(&loop_, path_, [](const std::string& line) {
      return line == "much" ? std::string(4 << 20, 'm') : "heard " + line;
    });
  }
  ~QuestionSocketTest() override {
    questions_.reset();
    EXPECT_NE(access(path_.c_str(), F_OK), 0) << "the file is left";
    rmdir(directory_.c_str());
  }

  Descriptor Connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, path_.size());
    Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return client;
  }
  static std::string ReadAll(int client) {
    std::string all;
    char part[4096];
    ssize_t got = 0;
    while ((got = recv(client, part, sizeof part, 0)) > 0)
      all.append(part, static_cast<size_t>(got));
    return all;
  }
  static void Say(int client, const std::string& text) {
    (void)!send(client, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Runs the loop while a thread is the client.
  template <typename Client>
  void While(Client client) {
    std::thread thread([&] {
      client();
      stop_ = Connect();
      Say(stop_.get(), "stop\n");
    });
    loop_.SetBeforeWait([this] {
      if (stop_.valid()) loop_.Stop();
    });
    loop_.Run();
    thread.join();
  }

  PollLoop loop_;
  std::string directory_;
  std::string path_;
  std::unique_ptr<QuestionSocket> questions_;
  Descriptor stop_;
};

TEST_F(QuestionSocketTest, ALineIsAnswered) {
  std::string answer, parts;
  While([&] {
    const Descriptor whole = Connect(), split = Connect();
    Say(split.get(), "b");
    Say(whole.get(), "a\nrest");
    answer = ReadAll(whole.get());
    Say(split.get(), "c\n");
    parts = ReadAll(split.get());
  });
  EXPECT_EQ(answer, "heard a\n");
  EXPECT_EQ(parts, "heard bc\n");
}

TEST_F(QuestionSocketTest, ALongAnswerIsReadWhole) {
  size_t bytes = 0;
  While([&] {
    const Descriptor client = Connect();
    Say(client.get(), "much\n");
    bytes = ReadAll(client.get()).size();
  });
  EXPECT_EQ(bytes, (4u << 20) + 1);
}

TEST_F(QuestionSocketTest, AClientThatSaysTooMuchOrLeavesIsLetGo) {
  std::string endless = "not read", after;
  While([&] {
    const Descriptor client = Connect();
    Say(client.get(), std::string(3 * QuestionSocket::kQuestionBytesMax, 'x'));
    endless = ReadAll(client.get());
    { const Descriptor leaves = Connect(); }
    {
      const Descriptor asks_and_leaves = Connect();
      Say(asks_and_leaves.get(), "much\n");
    }
    const Descriptor last = Connect();
    Say(last.get(), "z\n");
    after = ReadAll(last.get());
  });
  EXPECT_EQ(endless, "");
  EXPECT_EQ(after, "heard z\n");
}

TEST_F(QuestionSocketTest, ConnectionsHaveABound) {
  std::string beyond = "not read", after;
  While([&] {
    {
      std::vector<Descriptor> idle;
      for (size_t i = 0; i < QuestionSocket::kConnectionsMax; ++i) idle.push_back(Connect());
      const Descriptor one_more = Connect();
      beyond = ReadAll(one_more.get());
    }
    // The loop has to see first that the others have left.
    while (after.empty()) {
      const Descriptor last = Connect();
      Say(last.get(), "z\n");
      after = ReadAll(last.get());
    }
  });
  EXPECT_EQ(beyond, "");
  EXPECT_EQ(after, "heard z\n");
}

TEST_F(QuestionSocketTest, TheFileIsTheUsersAlone) {
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(QuestionSocketTest, ALongPathIsRefused) {
  EXPECT_EQ(QuestionSocket::Open(&loop_, "/tmp/" + std::string(200, 'x'), nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace serve::front
