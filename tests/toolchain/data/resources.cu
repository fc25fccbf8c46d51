extern __shared__ float sh[];
__device__ __noinline__ float g(float*p,int n){ float a[40]; for(int i=0;i<40;i++)a[i]=p[i]; float s=0; for(int i=0;i<n;i++) s+=a[(n*i)%40]; return s;}
__constant__ float cc[16];
template<class T> __global__ void tk(T*p){ __shared__ float z[32]; z[threadIdx.x]=p[0]; __syncthreads(); p[1]=z[3]+cc[threadIdx.x]; }
template __global__ void tk<float>(float*);
extern "C" __global__ void k(float*p,int n){ p[0]=g(p,n); p[1]=(double)p[3]*3.7;}
extern "C" __global__ void __launch_bounds__(1024,2) spill(float*p){ float a[64]; for(int i=0;i<64;i++)a[i]=p[i*33]; __syncthreads(); for(int j=0;j<9;j++){ for(int i=0;i<64;i++) a[i]=a[i]*a[(i+7)%64]+p[j];} for(int i=0;i<64;i++)p[i*7]=a[i]; }
