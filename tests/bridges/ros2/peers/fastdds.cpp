// Fast DDS with ready-made CDR: fastdds DOMAIN read|write TOPIC TYPE [HEX].  Another vendor, which knows nothing of us.
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;
using Bytes = std::vector<unsigned char>;

struct Raw : TopicDataType {
  explicit Raw(const std::string& name) { setName(name.c_str()); m_typeSize = 4 << 20; m_isGetKeyDefined = false; }
  bool serialize(void* data, SerializedPayload_t* payload) override {
    auto& bytes = *static_cast<Bytes*>(data);
    std::memcpy(payload->data, bytes.data(), bytes.size());
    payload->length = bytes.size();
    payload->encapsulation = CDR_LE;
    return true;
  }
  bool deserialize(SerializedPayload_t* payload, void* data) override {
    static_cast<Bytes*>(data)->assign(payload->data, payload->data + payload->length);
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
    return [data] { return static_cast<uint32_t>(static_cast<Bytes*>(data)->size()); };
  }
  void* createData() override { return new Bytes; }
  void deleteData(void* data) override { delete static_cast<Bytes*>(data); }
  bool getKey(void*, InstanceHandle_t*, bool) override { return false; }
};

int main(int count, char** words) {
  if (count < 5) return 2;
  auto* participant = DomainParticipantFactory::get_instance()->create_participant(std::stoi(words[1]), PARTICIPANT_QOS_DEFAULT);
  TypeSupport type(new Raw(words[4]));
  type.register_type(participant);
  auto* topic = participant->create_topic(words[3], words[4], TOPIC_QOS_DEFAULT);
  if (std::string(words[2]) == "read") {
    DataReaderQos qos = DATAREADER_QOS_DEFAULT;
    qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
    auto* reader = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT)->create_datareader(topic, qos);
    for (int round = 0, heard = 0; round < 300 && heard < 5; ++round) {
      Bytes bytes; SampleInfo info;
      while (heard < 5 && reader->take_next_sample(&bytes, &info) == ReturnCode_t::RETCODE_OK) {
        if (!info.valid_data) continue;
        for (unsigned char octet : bytes) std::printf("%02x", octet);
        std::printf("\n"); std::fflush(stdout); ++heard;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  } else {
    Bytes bytes;
    for (const char* hex = words[5]; *hex; hex += 2) bytes.push_back(std::stoi(std::string(hex, 2), nullptr, 16));
    DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
    qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
    auto* writer = participant->create_publisher(PUBLISHER_QOS_DEFAULT)->create_datawriter(topic, qos);
    for (int round = 0; round < 50; ++round) {
      writer->write(&bytes);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}
