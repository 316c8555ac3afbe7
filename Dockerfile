# pgaccel as an image: built with Go and a C compiler, run on plain Debian.
# With --target gpu the image has the worker with CUDA and NVRTC besides, and is to be run with
# --gpus all (NVIDIA's container toolkit gives it the driver). CUDA_VERSION is not to be newer
# than the driver: 13.0.1 from driver 580 on, 12.6.3 from 525 on, 11.8.0 with ubuntu22.04 from 520 on.
ARG GO_IMAGE=golang:1.26-bookworm
ARG RUN_IMAGE=debian:bookworm-slim
ARG CUDA_VERSION=13.0.1
ARG CUDA_OS=ubuntu24.04
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go build -buildvcs=false -o /pgaccel ./cmd/pgaccel

FROM nvidia/cuda:${CUDA_VERSION}-devel-${CUDA_OS} AS build-gpu
COPY --from=build /usr/local/go /usr/local/go
COPY --from=build /go /go
COPY --from=build /src /src
WORKDIR /src
ENV PATH=/usr/local/go/bin:$PATH GOPATH=/go CUDA_HOME=/usr/local/cuda
RUN scripts/cuda-env.sh go build -buildvcs=false -tags cuda -o /pgaccel-gpu ./cmd/pgaccel-gpu

# The runtime image has NVRTC.
FROM nvidia/cuda:${CUDA_VERSION}-runtime-${CUDA_OS} AS gpu
COPY --from=build /pgaccel /usr/local/bin/pgaccel
COPY --from=build-gpu /pgaccel-gpu /usr/local/bin/pgaccel-gpu
RUN useradd --system --create-home pgaccel
USER pgaccel
EXPOSE 6432 8432
ENTRYPOINT ["pgaccel"]
CMD ["serve"]

FROM ${RUN_IMAGE}
COPY --from=build /pgaccel /usr/local/bin/pgaccel
RUN useradd --system --no-create-home pgaccel
USER pgaccel
EXPOSE 6432 8432
ENTRYPOINT ["pgaccel"]
CMD ["serve"]
