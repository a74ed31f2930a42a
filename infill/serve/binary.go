package serve

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The extension binary_tensor_data of the Open Inference Protocol, which Triton's clients
// use unless they are told otherwise: behind the JSON, whose length a header tells, come
// the tensors one after another. A string is its length in four bytes, then its bytes;
// numbers are little-endian.

const jsonLength = "Inference-Header-Content-Length"

// binaryTensors turns such requests into those of plain JSON, and their answers back.
func (s *Server) binaryTensors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v2/models/") || r.Header.Get(jsonLength) == "" {
			next.ServeHTTP(w, r)
			return
		}
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) //nolint:errcheck // the writers of tests have none
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.Limits.Body))
		var large *http.MaxBytesError
		var cut *Problem
		switch {
		case err == nil:
		case errors.As(err, &cut):
			writeProblem(w, cut)
			return
		case errors.As(err, &large):
			writeProblem(w, s.tooLarge())
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			writeProblem(w, &Problem{status: http.StatusRequestTimeout, Message: lateBody})
			return
		default:
			writeProblem(w, &Problem{status: statusGone, Message: "the client left"})
			return
		}
		plain, asked, err := unpack(body, r.Header.Get(jsonLength))
		if err != nil {
			writeProblem(w, &Problem{status: http.StatusBadRequest, Message: err.Error()})
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(plain)), int64(len(plain))
		r.Header.Set("Content-Type", "application/json")
		kept := &kept{header: http.Header{}, status: http.StatusOK}
		next.ServeHTTP(kept, r)
		answer, length := kept.body.Bytes(), 0
		if kept.status == http.StatusOK {
			answer, length = pack(answer, asked)
		}
		kept.header.Del("Content-Length")
		maps.Copy(w.Header(), kept.header)
		if length > 0 {
			w.Header().Set(jsonLength, strconv.Itoa(length))
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		w.WriteHeader(kept.status)
		w.Write(answer) //nolint:errcheck // a client that left wants no answer
	})
}

// kept is an answer before it is sent.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) WriteHeader(status int)      { k.status = status }
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }

// wanted are the outputs that a client takes in bytes.
type wanted struct {
	all  bool
	each map[string]bool
}

func (a wanted) has(name string) bool {
	if one, ok := a.each[name]; ok {
		return one
	}
	return a.all
}

// unpack gives the request as JSON alone.
func unpack(body []byte, length string) (plain []byte, asked wanted, err error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(body) {
		return nil, asked, errors.New("the header " + jsonLength + " is not the length of the request's JSON")
	}
	var request map[string]json.RawMessage
	if json.Unmarshal(body[:n], &request) != nil || request == nil {
		return body[:n], asked, nil // the reader of JSON tells what is wrong
	}
	rest := body[n:]
	var inputs []map[string]json.RawMessage
	if json.Unmarshal(request["inputs"], &inputs) == nil {
		for _, input := range inputs {
			var p struct {
				Size *int `json:"binary_data_size"`
			}
			if json.Unmarshal(input["parameters"], &p) != nil || p.Size == nil {
				continue
			}
			if *p.Size < 0 || *p.Size > len(rest) {
				return nil, asked, errors.New("binary_data_size is more than was sent")
			}
			texts, err := stringsOf(rest[:*p.Size])
			if err != nil {
				return nil, asked, err
			}
			rest = rest[*p.Size:]
			delete(input, "parameters")
			input["data"], _ = json.Marshal(texts)
		}
		request["inputs"], _ = json.Marshal(inputs)
	}
	if len(rest) > 0 {
		return nil, asked, errors.New("more bytes were sent than the inputs' binary_data_size")
	}
	var parameters map[string]json.RawMessage
	if json.Unmarshal(request["parameters"], &parameters) == nil && parameters != nil {
		asked.all = string(parameters["binary_data_output"]) == "true"
		delete(parameters, "binary_data_output")
		request["parameters"], _ = json.Marshal(parameters)
	}
	var outputs []struct {
		Name       string
		Parameters struct {
			Binary *bool `json:"binary_data"`
		}
	}
	if json.Unmarshal(request["outputs"], &outputs) == nil {
		asked.each = map[string]bool{}
		for _, o := range outputs {
			if o.Parameters.Binary != nil {
				asked.each[o.Name] = *o.Parameters.Binary
			}
		}
	}
	plain, err = json.Marshal(request)
	return plain, asked, err
}

// stringsOf reads the strings of a tensor.
func stringsOf(data []byte) (texts []string, err error) {
	for len(data) > 0 {
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			return nil, errors.New("a string of the input is longer than what was sent")
		}
		n := int(binary.LittleEndian.Uint32(data))
		text := data[4 : 4+n]
		if !utf8.Valid(text) {
			return nil, errors.New("a string of the input is not UTF-8")
		}
		texts, data = append(texts, string(text)), data[4+n:]
	}
	return texts, nil
}

// pack puts the outputs that are wanted so behind the JSON, and gives the JSON's length;
// 0 where none is.
func pack(answer []byte, asked wanted) (packed []byte, length int) {
	var response map[string]json.RawMessage
	var outputs []map[string]json.RawMessage
	if json.Unmarshal(answer, &response) != nil || json.Unmarshal(response["outputs"], &outputs) != nil {
		return answer, 0
	}
	var data []byte
	some := false
	for _, output := range outputs {
		var name string
		if json.Unmarshal(output["name"], &name) != nil || !asked.has(name) {
			continue
		}
		var texts []string
		var numbers []float64
		before := len(data)
		if json.Unmarshal(output["data"], &texts) == nil {
			for _, text := range texts {
				data = append(binary.LittleEndian.AppendUint32(data, uint32(len(text))), text...)
			}
		} else if json.Unmarshal(output["data"], &numbers) == nil {
			for _, x := range numbers {
				data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
			}
		}
		delete(output, "data")
		output["parameters"], _ = json.Marshal(map[string]int{"binary_data_size": len(data) - before})
		some = true
	}
	if !some {
		return answer, 0
	}
	response["outputs"], _ = json.Marshal(outputs)
	head, err := json.Marshal(response)
	if err != nil {
		return answer, 0
	}
	return append(head, data...), len(head)
}
